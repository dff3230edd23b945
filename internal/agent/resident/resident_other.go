//go:build !linux

package resident

// Release does nothing: the system decides alone which pages of a program stay in memory.
func Release() error { return nil }
