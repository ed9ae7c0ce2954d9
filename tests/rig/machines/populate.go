package main

import "context"

func populate(ctx context.Context, a []string) error { return nil }
