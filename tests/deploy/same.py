#!/usr/bin/env python3
"""Two sets of objects as the API server would store them (kubectl apply --dry-run=server -o json): the same in meaning?
Left out: what only the server sets, Namespaces, and what tells who installed it."""
import json
import sys

INSTALLER = ('app.kubernetes.io/managed-by', 'app.kubernetes.io/version', 'helm.sh/chart', 'helm.sh/resource-policy')


def objects(path):
    with open(path, encoding='utf-8') as file:
        read = json.load(file)
    kept = {}
    for one in read['items'] if read['kind'] == 'List' else [read]:
        meta = one['metadata']
        if one['kind'] == 'Namespace':
            continue
        one.pop('status', None)
        for key in ('uid', 'resourceVersion', 'creationTimestamp', 'generation', 'managedFields'):
            meta.pop(key, None)
        for key in ('labels', 'annotations'):
            meta[key] = {k: v for k, v in meta.get(key, {}).items() if k not in INSTALLER}
        for claim in one['spec'].get('volumeClaimTemplates', []) if one['kind'] == 'StatefulSet' else []:
            claim.pop('status', None)
        kept[f"{one['kind']} {meta.get('namespace', '')}/{meta['name']}"] = flat(one)
    return kept


def flat(value, path=''):
    if isinstance(value, dict) and value:
        return {k: v for key, part in value.items() for k, v in flat(part, f'{path}.{key}').items()}
    if isinstance(value, list) and value and all(isinstance(part, dict) and 'name' in part for part in value):
        return flat({part['name']: part for part in value}, path)
    if isinstance(value, list) and value:
        return {k: v for at, part in enumerate(value) for k, v in flat(part, f'{path}[{at}]').items()}
    return {path: value}


def main():
    left, right = objects(sys.argv[1]), objects(sys.argv[2])
    differences = []
    for name in sorted(left.keys() | right.keys()):
        if name not in left or name not in right:
            differences.append(f"{name}: only in the {'second' if name in right else 'first'}")
            continue
        a, b = left[name], right[name]
        differences += [f'{name} {path}: {a.get(path)!r} and {b.get(path)!r}' for path in sorted(a.keys() | b.keys())
                        if a.get(path) != b.get(path)]
    print('\n'.join(differences) or f'{len(left)} objects the same')
    return 1 if differences else 0


if __name__ == '__main__':
    sys.exit(main())
