package wire_test

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/wire"
)

type name string

// message has a field of each type.
type message struct {
	Int     int64
	Bool    bool
	Fixed   uint64
	Float32 float32
	Float64 float64
	String  string
	Text    name
	Shared  string
	UUID    domain.UUID
	Strings []string
	Many    []message
	Inner   *message
	Wait    time.Duration
	Bytes   []byte
}

func (m *message) Fields(c *wire.Codec) {
	wire.Int(c, 1, &m.Int)
	c.Bool(2, &m.Bool)
	c.Fixed64(3, &m.Fixed)
	c.Float32(4, &m.Float32)
	c.Float64(5, &m.Float64)
	c.String(6, &m.String)
	wire.Text(c, 7, &m.Text)
	c.Shared(8, &m.Shared)
	c.UUID(9, &m.UUID)
	c.Strings(10, &m.Strings)
	wire.Many(c, 11, &m.Many, (*message).Fields)
	wire.Optional(c, 12, &m.Inner, (*message).Fields)
	c.Duration(13, &m.Wait, time.Minute)
	c.Bytes(14, &m.Bytes)
}

func full() message {
	return message{-1, true, 2, 3.5, 4.5, "five", "six", "seven", domain.UUID{8}, []string{"nine", ""}, nil, nil, 10 * time.Minute, []byte("eleven")}
}

// TestWritingChangesNothing: a snapshot is written while others read the same records. The race detector sees a write.
func TestWritingChangesNothing(t *testing.T) {
	inner := full()
	m := full()
	m.Many, m.Inner = []message{full(), {}}, &inner
	var wrote [2][]byte
	var work sync.WaitGroup
	for i := range wrote {
		work.Go(func() { wrote[i] = wire.Append(nil, &m) })
	}
	work.Wait()
	var r wire.Reader
	var back message
	if err := r.Read(wrote[0], &back); err != nil {
		t.Fatal(err)
	}
	if again := wire.Append(nil, &back); !bytes.Equal(again, wrote[0]) || !bytes.Equal(wrote[1], wrote[0]) {
		t.Errorf("wrote\n%x and\n%x, read and wrote again\n%x", wrote[0], wrote[1], again)
	}
}
