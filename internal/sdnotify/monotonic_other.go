//go:build !linux

package sdnotify

// monotonic is empty where there is no systemd.
func monotonic() string { return "" }
