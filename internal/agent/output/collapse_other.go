//go:build !linux

package output

import (
	"errors"
	"os"
)

const blockSize = 64 << 10

func collapse(*os.File, int64) error { return errors.ErrUnsupported }
