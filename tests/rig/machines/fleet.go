package main

import "context"

func startFleet(ctx context.Context, k *cloud, t *traffic, o options, port int) error { return nil }
func populate(ctx context.Context, a []string) error                                  { return nil }
