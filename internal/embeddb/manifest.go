package embeddb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble reads its manifest up to the first unreadable record, takes the rest for a torn tail, and removes the tables that only later records
// name. checkManifest refuses a manifest in which an intact record follows an unreadable one, because only the last record can be torn.
//
// The manifest's format (record/record.go): blocks of 32 KiB, chunks within a block, each with a header of checksum 4, length 2, type 1.
const (
	manifestHeader = 7
	manifestFull   = 1
	manifestFirst  = 2
	manifestLast   = 4
)

var errDamagedManifest = errors.New("a record cannot be read, although intact records follow it")

// checkManifest returns *Damaged when the manifest in dir is damaged before its last record.
func checkManifest(files vfs.FS, dir string) error {
	found, err := pebble.Peek(dir, files)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !found.Exists {
		return nil
	}
	if err != nil {
		return err
	}
	file, err := files.Open(found.ManifestFilename)
	if errors.Is(err, fs.ErrNotExist) {
		return &Damaged{File: found.ManifestFilename, Offset: -1, Err: errors.New("it is missing")}
	}
	if err != nil {
		return err
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", found.ManifestFilename, err)
	}
	if at := manifestDamage(content); at >= 0 {
		return &Damaged{File: found.ManifestFilename, Offset: int64(at), Err: errDamagedManifest}
	}
	return nil
}

// manifestDamage returns the position of the first unreadable chunk, if a record begins somewhere after it, or else -1.
func manifestDamage(content []byte) int {
	for at := 0; at < len(content); {
		left := walBlock - at%walBlock
		size := 0
		if left >= manifestHeader {
			size = manifestChunk(content[at:min(at+left, len(content))])
		} else {
			size = left // padding
		}
		if size > 0 {
			at += size
			continue
		}
		for next := at + 1; next+manifestHeader <= len(content); next++ {
			if kind := content[next+6]; kind != manifestFull && kind != manifestFirst {
				continue
			}
			block := walBlock - next%walBlock
			if manifestChunk(content[next:min(next+block, len(content))]) > 0 {
				return at
			}
		}
		return -1
	}
	return -1
}

// manifestChunk returns the size of the intact chunk at the beginning of b, or 0.
func manifestChunk(b []byte) int {
	if len(b) < manifestHeader || b[6] < manifestFull || b[6] > manifestLast {
		return 0
	}
	size := manifestHeader + int(binary.LittleEndian.Uint16(b[4:6]))
	if size > len(b) {
		return 0
	}
	crc := crc32.Checksum(b[6:size], castagnoli)
	if binary.LittleEndian.Uint32(b) != (crc>>15|crc<<17)+0xa282ead8 {
		return 0
	}
	return size
}
