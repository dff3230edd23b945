//go:build !windows

package main

import "context"

// runAsService runs f: only services on Windows need a protocol with their manager.
func runAsService(ctx context.Context, f func(context.Context) error) error { return f(ctx) }
