// Package fileowner checks to which user of the machine a file belongs.
package fileowner

import "io/fs"

// Check does nothing: Windows has other rules for owners.
func Check(string, fs.FileInfo) error { return nil }
