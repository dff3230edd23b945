package output

import (
	"os"

	"golang.org/x/sys/unix"
)

// blockSize is a multiple of the block size of the file systems that can remove the beginning of a file: ext4 and XFS.
const blockSize = 64 << 10

// collapse removes the first n bytes of a file, where n is a multiple of blockSize. Other programs' appends continue as if the file
// had always been shorter.
func collapse(file *os.File, n int64) error {
	return unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_COLLAPSE_RANGE, 0, n)
}
