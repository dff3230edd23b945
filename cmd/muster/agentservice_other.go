//go:build !windows

package main

import "context"

// runAsService runs f: only Windows asks its services to speak a protocol.
func runAsService(ctx context.Context, f func(context.Context) error) error { return f(ctx) }
