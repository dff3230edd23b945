//go:build !linux

package heap

// Memory is not known here.
func Memory() (total, limit uint64, ok bool) { return 0, 0, false }
