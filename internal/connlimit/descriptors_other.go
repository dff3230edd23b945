//go:build !unix

package connlimit

// Descriptors is how many files and connections the process may have open. Windows bounds handles by memory alone.
func Descriptors() int { return 1 << 20 }
