package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// version is set by the linker for releases (make dist).
var version string

type versionCommand struct{}

func (versionCommand) Run(stdout io.Writer) error {
	_, err := fmt.Fprintf(stdout, "muster %s %s %s/%s\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// versionText returns the release, or else the commit that the binary was built from.
func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}
