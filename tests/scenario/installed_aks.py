#!/usr/bin/env python3
"""As installed.py, on AKS: its overlay, its example, Azure's own protocols."""
import installed
import stage

if __name__ == '__main__':
    stage.main(lambda s: installed.installed(s, installed.Aks(s)), 'installed_aks')
