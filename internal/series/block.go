package series

import (
	"encoding/binary"
	"errors"
	"math"
)

// A block has the Stats of up to 64 consecutive periods of one series: the minutes of an hour, or the hours of a day. It is a sequence of tokens. A token's upper
// two bits say what it is, and its lower six have an argument:
//
//	skip n    n+1 periods without samples
//	same n    n+1 periods with the Stat of the one before
//	one n     a period with one sample, and the difference of its value from the sum before: zigzag n, or what follows (seeVarint, seeFloat)
//	full      a period with several samples: count, sum, minimum and maximum follow as numbers
const (
	skip = iota << 6
	same
	one
	full

	argument  = 1<<6 - 1
	seeVarint = 61 // the difference follows as a varint
	seeFloat  = 62 // the value itself follows as 8 bytes
)

// block is a block that is being written. Periods are added in order.
type block struct {
	bytes  []byte
	next   int // period
	before Stat
	repeat bool // the last token is a same, which may grow
}

func (b *block) reset() { *b = block{bytes: b.bytes[:0]} }

// add adds a period. It ignores a period that is not newer than the last one.
func (b *block) add(period int, s Stat) {
	if period < b.next || s.Count == 0 {
		return
	}
	for gap := period - b.next; gap > 0; gap -= min(gap, argument+1) {
		b.bytes = append(b.bytes, skip|byte(min(gap, argument+1)-1))
		b.repeat = false
	}
	b.next = period + 1
	switch {
	case s == b.before && b.repeat && b.bytes[len(b.bytes)-1]&argument < argument:
		b.bytes[len(b.bytes)-1]++
		return
	case s == b.before:
		b.bytes = append(b.bytes, same)
		b.repeat = true
		return
	case s.single():
		if z, ok := difference(s.Sum, b.before.Sum); !ok {
			b.bytes = binary.LittleEndian.AppendUint64(append(b.bytes, one|seeFloat), math.Float64bits(s.Sum))
		} else if z < seeVarint {
			b.bytes = append(b.bytes, one|byte(z))
		} else {
			b.bytes = binary.AppendUvarint(append(b.bytes, one|seeVarint), z)
		}
	default:
		b.bytes = append(b.bytes, full)
		for _, v := range [...]float64{s.Count, s.Sum, s.Min, s.Max} {
			b.bytes = appendNumber(b.bytes, v)
		}
	}
	b.before, b.repeat = s, false
}

// wholeMax bounds the numbers that are stored as integers: sums and differences of them are exact.
const wholeMax = 1 << 51

func whole(v float64) (int64, bool) {
	n := int64(v)
	return n, float64(n) == v && n > -wholeMax && n < wholeMax && !(n == 0 && math.Signbit(v))
}

func zigzag(n int64) uint64   { return uint64(n)<<1 ^ uint64(n>>63) }
func unzigzag(z uint64) int64 { return int64(z>>1) ^ -int64(z&1) }

func difference(to, from float64) (z uint64, ok bool) {
	a, whole1 := whole(to)
	b, whole2 := whole(from)
	return zigzag(a - b), whole1 && whole2
}

// appendNumber appends an integer as a varint, and any other number as a byte 1 and its 8 bytes.
func appendNumber(b []byte, v float64) []byte {
	if n, ok := whole(v); ok {
		return binary.AppendUvarint(b, zigzag(n)<<1)
	}
	return binary.LittleEndian.AppendUint64(append(b, 1), math.Float64bits(v))
}

var errBlock = errors.New("malformed block")

func readNumber(b []byte) (v float64, rest []byte, err error) {
	z, rest, err := readUvarint(b)
	if err != nil {
		return 0, nil, err
	}
	if z&1 == 0 {
		return float64(unzigzag(z >> 1)), rest, nil
	}
	return readFloat(rest)
}

func readFloat(b []byte) (float64, []byte, error) {
	if len(b) < 8 {
		return 0, nil, errBlock
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b)), b[8:], nil
}

func readUvarint(b []byte) (uint64, []byte, error) {
	n, used := binary.Uvarint(b)
	if used <= 0 {
		return 0, nil, errBlock
	}
	return n, b[used:], nil
}

// read yields the periods of a block. It returns a block to which further periods can be added.
func read(bytes []byte, yield func(period int, s Stat)) (b block, err error) {
	for rest := bytes; len(rest) > 0; {
		token, n := rest[0]&^argument, int(rest[0]&argument)
		rest = rest[1:]
		b.repeat = token == same
		switch token {
		case skip:
			b.next += n + 1
			continue
		case same:
			for range n {
				yield(b.next, b.before)
				b.next++
			}
		case one:
			v := 0.0
			switch n {
			case seeFloat:
				v, rest, err = readFloat(rest)
			case seeVarint:
				var z uint64
				z, rest, err = readUvarint(rest)
				v = b.before.Sum + float64(unzigzag(z))
			default:
				v = b.before.Sum + float64(unzigzag(uint64(n)))
			}
			b.before = Of(v)
		case full:
			var v [4]float64
			for i := 0; i < len(v) && err == nil; i++ {
				v[i], rest, err = readNumber(rest)
			}
			b.before = Stat{v[0], v[1], v[2], v[3]}
		}
		if err != nil || b.next > argument {
			return block{}, errBlock
		}
		yield(b.next, b.before)
		b.next++
	}
	b.bytes = bytes
	return b, nil
}
