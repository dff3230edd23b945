package buildfiles

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"sync"
)

// Sizes of parts, in bytes. A file is cut where its content says so, so that the parts behind an insertion stay the same.
const (
	partMin  = 512 << 10
	PartMax  = 8 << 20
	cutMask  = uint64(1<<21-1) << 43 // one position of 2 MiB on average is a cut
	gearSeed = "muster: where parts of a build end"
)

// gear has a random number for each byte. The numbers belong to the format as much as the sizes: with others, builds share no parts
// with those that are stored.
var gear = sync.OnceValue(func() *[256]uint64 {
	var table [256]uint64
	for i := range table {
		sum := sha256.Sum256(append([]byte(gearSeed), byte(i)))
		table[i] = binary.BigEndian.Uint64(sum[:])
	}
	return &table
})

// cut returns how many bytes of content, which begins a part, belong to that part.
func cut(content []byte) int {
	content = content[:min(len(content), PartMax)]
	table, sum := gear(), uint64(0)
	// The sum forgets a byte after 64 others, so what is before partMin-64 cannot matter.
	for i := max(0, partMin-64); i < len(content); i++ {
		sum = sum<<1 + table[content[i]]
		if i >= partMin && sum&cutMask == 0 {
			return i + 1
		}
	}
	return len(content)
}

var buffers = sync.Pool{New: func() any { return new([PartMax]byte) }}

// Split cuts a file into parts, gives each to put, and returns the file's size, digest and parts. The content is valid until put
// returns. It reads at most limit bytes: a longer file is Rejected.
func Split(r io.Reader, limit int64, put func(Digest, []byte) error) (f File, err error) {
	buffer := buffers.Get().(*[PartMax]byte)
	defer buffers.Put(buffer)
	whole, have, ended := sha256.New(), 0, false
	if limit < math.MaxInt64 {
		r = io.LimitReader(r, limit+1) // one more shows that the file is longer
	}
	for {
		for have < PartMax && !ended {
			n, err := r.Read(buffer[have:])
			have += n
			if errors.Is(err, io.EOF) {
				ended = true
			} else if err != nil {
				return f, err
			}
		}
		if f.Size+int64(have) > limit {
			return f, reject("a file has more than %d bytes", limit)
		}
		if have == 0 {
			whole.Sum(f.Digest[:0])
			return f, nil
		}
		n := cut(buffer[:have])
		part := Part{DigestOf(buffer[:n]), int64(n)}
		if err := put(part.Digest, buffer[:n]); err != nil {
			return f, err
		}
		whole.Write(buffer[:n])
		f.Parts, f.Size = append(f.Parts, part), f.Size+part.Size
		have = copy(buffer[:], buffer[n:have])
	}
}
