package main

import (
	"io"
	"strings"
	"testing"
)

// A backup is restored in two passes, so a stream is refused, with the reason.
func TestRestoreFromStandardInput(t *testing.T) {
	err := run(t.Context(), []string{"restore", "-", "--data", t.TempDir()}, []string{"HOME=" + t.TempDir()}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "reads a backup twice") {
		t.Error(err)
	}
}
