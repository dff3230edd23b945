package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/musterhq/muster/internal/domain/wire"
)

// TestPartReader reads parts of all sizes, also some that are longer than a batch, in pieces of any length.
func TestPartReader(t *testing.T) {
	var stored []byte
	sizes := []int{0, 1, 300, batchBytes - 3, 17, batchBytes + 1, 2, 3*batchBytes + 5, batchBytes, 9}
	for i, size := range sizes {
		stored = appendPart(stored, uint64(20+i), bytes.Repeat([]byte{byte(i)}, size))
	}
	stored = appendPart(stored, partEnd, nil)
	behind := append(bytes.Clone(stored), "what is behind the end"...)
	for name, from := range map[string]io.Reader{
		"at once": bytes.NewReader(stored), "in halves": iotest.HalfReader(bytes.NewReader(stored)), "with the error": iotest.DataErrReader(bytes.NewReader(stored)), "with more behind it": bytes.NewReader(behind),
	} {
		r := partReader{from: from}
		batches := [2]batch{}
		read := 0
		for n := 0; !r.ended; n++ {
			b := &batches[n%2]
			if r.read(b); b.err != nil {
				t.Fatalf("%s: %v after %d parts", name, b.err, read)
			}
			for _, p := range b.parts {
				if p.kind == partEnd {
					break
				}
				if want := bytes.Repeat([]byte{byte(read)}, sizes[read]); p.kind != uint64(20+read) || !bytes.Equal(p.body, want) {
					t.Fatalf("%s: part %d is of kind %d and %d bytes, want %d bytes", name, read, p.kind, len(p.body), len(want))
				}
				read++
			}
		}
		if read != len(sizes) {
			t.Errorf("%s: %d parts, want %d", name, read, len(sizes))
		}
	}
}

// TestPartReaderErrors: what is not a whole snapshot ends in an error, behind the parts that are whole.
func TestPartReaderErrors(t *testing.T) {
	whole := appendPart(nil, 2, []byte("first"))
	broken := errors.New("broken disk")
	for name, test := range map[string]struct {
		from io.Reader
		want error
	}{
		"empty":              {bytes.NewReader(nil), io.ErrUnexpectedEOF},
		"without an end":     {bytes.NewReader(whole), io.ErrUnexpectedEOF},
		"cut in a length":    {bytes.NewReader(append(bytes.Clone(whole), 0x80)), io.ErrUnexpectedEOF},
		"cut in a part":      {bytes.NewReader(appendPart(whole, 3, make([]byte, 200))[:100]), io.ErrUnexpectedEOF},
		"a length too large": {bytes.NewReader(binary.AppendUvarint(bytes.Clone(whole), maxPart+1)), wire.ErrMalformed},
		"a length of no end": {bytes.NewReader(append(bytes.Clone(whole), bytes.Repeat([]byte{0xff}, 11)...)), wire.ErrMalformed},
		"a part of nothing":  {bytes.NewReader(append(bytes.Clone(whole), 0)), wire.ErrMalformed},
		"a broken disk":      {io.MultiReader(bytes.NewReader(whole), iotest.ErrReader(broken)), broken},
	} {
		r := partReader{from: test.from}
		var b batch
		if r.read(&b); !errors.Is(b.err, test.want) {
			t.Errorf("%s: %v, want %v", name, b.err, test.want)
		}
		if name != "empty" && (len(b.parts) != 1 || string(b.parts[0].body) != "first") {
			t.Errorf("%s: %d parts, want the first one", name, len(b.parts))
		}
	}
}

func appendPart(b []byte, kind uint64, body []byte) []byte {
	p := binary.AppendUvarint(nil, kind<<3|lengthDelimited)
	p = append(binary.AppendUvarint(p, uint64(len(body))), body...)
	return append(binary.AppendUvarint(b, uint64(len(p))), p...)
}
