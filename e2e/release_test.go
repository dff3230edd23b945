package e2e

import (
	"os"
	"testing"
)

// releaseBytesMax is the maximum size of a release's binary. It preserves the reduction in docs/decisions/0108-methods-that-nothing-calls.md.
const releaseBytesMax = 56_500_000

func TestSizeOfARelease(t *testing.T) {
	info, err := os.Stat(musterBinary)
	must(t, err)
	t.Logf("%d bytes", info.Size())
	if info.Size() > releaseBytesMax {
		t.Errorf("the binary has %d bytes, want at most %d: see what came in with `go tool nm -size -sort size` on a binary that is not stripped. If a binary has "+
			"80 MB or more, something looks up methods by names that are no constants again (scripts/prune)", info.Size(), releaseBytesMax)
	}
}
