package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/domain"
)

type integer interface {
	~int | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Int is a field of an integer or enum type. A negative number takes ten bytes, as in protobuf's int64.
func Int[T integer](c *Codec, n uint32, v *T) {
	if c.reading {
		if f := c.take(n, varint); f != nil {
			if *v = T(f.value); uint64(int64(*v)) != f.value && c.err == nil {
				c.err = fmt.Errorf("field %d is %d, out of the range of its type: %w", n, f.value, ErrMalformed)
			}
		}
		return
	}
	if *v != 0 {
		c.tag(n, varint)
		c.Buf = binary.AppendUvarint(c.Buf, uint64(int64(*v)))
	}
}

// Bool is a field of type bool.
func (c *Codec) Bool(n uint32, v *bool) {
	var x uint8
	if *v {
		x = 1
	}
	Int(c, n, &x)
	if c.reading {
		*v = x != 0
	}
}

// Fixed64 is a field of eight bytes, for numbers of the whole range, such as hashes.
func (c *Codec) Fixed64(n uint32, v *uint64) {
	if c.reading {
		if f := c.take(n, fixed64); f != nil {
			*v = f.value
		}
		return
	}
	if *v != 0 {
		c.tag(n, fixed64)
		c.Buf = binary.LittleEndian.AppendUint64(c.Buf, *v)
	}
}

// Float32 is a field of type float.
func (c *Codec) Float32(n uint32, v *float32) {
	if c.reading {
		if f := c.take(n, fixed32); f != nil {
			*v = math.Float32frombits(uint32(f.value))
		}
		return
	}
	if *v != 0 {
		c.tag(n, fixed32)
		c.Buf = binary.LittleEndian.AppendUint32(c.Buf, math.Float32bits(*v))
	}
}

// Float64 is a field of type double.
func (c *Codec) Float64(n uint32, v *float64) {
	bits := math.Float64bits(*v)
	c.Fixed64(n, &bits)
	if c.reading {
		*v = math.Float64frombits(bits)
	}
}

// Duration is a field of a duration in whole units.
func (c *Codec) Duration(n uint32, d *time.Duration, unit time.Duration) {
	units := int64(*d / unit)
	Int(c, n, &units)
	if c.reading {
		*d = time.Duration(units) * unit
	}
}

// Bytes is a field of type bytes.
func (c *Codec) Bytes(n uint32, v *[]byte) {
	s := string(*v)
	c.String(n, &s)
	if c.reading && s != "" {
		*v = []byte(s)
	}
}

// String is a field of type string.
func (c *Codec) String(n uint32, v *string) {
	if c.reading {
		if f := c.take(n, length); f != nil {
			*v = string(c.bytes(f))
		}
		return
	}
	if *v != "" {
		c.tag(n, length)
		c.Buf = binary.AppendUvarint(c.Buf, uint64(len(*v)))
		c.Buf = append(c.Buf, *v...)
	}
}

// Text is a String field of a named string type.
func Text[T ~string](c *Codec, n uint32, v *T) {
	s := string(*v)
	c.String(n, &s)
	if c.reading {
		*v = T(s)
	}
}

// Shared is a String whose value recurs in many messages; a Reader that shares strings keeps one copy.
func (c *Codec) Shared(n uint32, v *string) { c.SharedFrom(n, v, 0) }

// SharedFrom is Shared for strings of at least `least` bytes. Shorter ones are shared only with the strings just before them.
func (c *Codec) SharedFrom(n uint32, v *string, least int) {
	if !c.reading || c.strings == nil {
		c.String(n, v)
		return
	}
	if f := c.take(n, length); f != nil {
		*v = c.strings.of(c.bytes(f), least)
	}
}

// UUID is a field of sixteen bytes.
func (c *Codec) UUID(n uint32, v *domain.UUID) {
	if c.reading {
		if f := c.take(n, length); f != nil {
			if f.value != uint64(len(v)) {
				c.err = fmt.Errorf("field %d has %d bytes, want 16: %w", n, f.value, ErrMalformed)
				return
			}
			copy(v[:], c.bytes(f))
		}
		return
	}
	if !v.IsZero() {
		c.tag(n, length)
		c.Buf = append(c.Buf, 16)
		c.Buf = append(c.Buf, v[:]...)
	}
}

// ID is a UUID field of a named type.
func ID[K domain.Kind](c *Codec, n uint32, v *domain.ID[K]) { c.UUID(n, (*domain.UUID)(v)) }

// Strings is a repeated string.
func (c *Codec) Strings(n uint32, v *[]string) {
	if c.reading {
		*v = slices.Grow(*v, c.count(n))
		for f := c.take(n, length); f != nil; f = c.take(n, length) {
			*v = append(*v, string(c.bytes(f)))
		}
		return
	}
	for _, s := range *v {
		c.tag(n, length)
		c.Buf = binary.AppendUvarint(c.Buf, uint64(len(s)))
		c.Buf = append(c.Buf, s...)
	}
}

// Sub is a message field; present reports whether it exists.
func Sub[T any](c *Codec, n uint32, v *T, present bool, fields func(*T, *Codec)) bool {
	if c.reading {
		f := c.take(n, length)
		if f == nil {
			return false
		}
		c.nested(c.bytes(f), func(in *Codec) { fields(v, in) })
		return true
	}
	if present {
		c.tag(n, length)
		c.lengthPrefixed(func() { fields(v, c) })
	}
	return present
}

// Many is a repeated message.
func Many[T any](c *Codec, n uint32, v *[]T, fields func(*T, *Codec)) {
	if c.reading {
		*v = slices.Grow(*v, c.count(n))
		for f := c.take(n, length); f != nil; f = c.take(n, length) {
			var zero T
			*v = append(*v, zero)
			x := &(*v)[len(*v)-1]
			c.nested(c.bytes(f), func(in *Codec) { fields(x, in) })
		}
		return
	}
	for i := range *v {
		c.tag(n, length)
		c.lengthPrefixed(func() { fields(&(*v)[i], c) })
	}
}

// nested reads a message inside this one. The inner codec keeps its list of fields for the next one.
func (c *Codec) nested(b []byte, f func(*Codec)) {
	if c.inner == nil {
		c.inner = &Codec{strings: c.strings}
	}
	c.inner.fields = c.inner.fields[:0]
	if err := c.inner.read(b, f); err != nil && c.err == nil {
		c.err = err
	}
}

// lengthPrefixed writes the length of a body and the body. Most bodies are shorter than 128 bytes, so it reserves one byte for the length
// and moves a longer body.
func (c *Codec) lengthPrefixed(body func()) {
	at := len(c.Buf)
	c.Buf = append(c.Buf, 0)
	body()
	c.Buf = PrefixLength(c.Buf, at)
}

// PrefixLength completes b: the byte at `at` is reserved for the length of what follows it.
func PrefixLength(b []byte, at int) []byte {
	n := len(b) - at - 1
	if n < 0x80 {
		b[at] = byte(n)
		return b
	}
	var prefix [binary.MaxVarintLen64]byte
	l := binary.PutUvarint(prefix[:], uint64(n))
	b = append(b, prefix[1:l]...)
	copy(b[at+l:], b[at+1:at+1+n])
	copy(b[at:], prefix[:l])
	return b
}

// Optional is a message field behind a pointer; nil means absent.
func Optional[T any](c *Codec, n uint32, v **T, fields func(*T, *Codec)) {
	if *v == nil {
		if !c.reading || c.count(n) == 0 {
			return
		}
		*v = new(T)
	}
	Sub(c, n, *v, true, fields)
}
