// Package series keeps time series on disk: minutes for 15 days and hours for 455 days, within a budget of bytes and of series. Nothing depends on
// its directory: it can be deleted while the service is down, and is then created again.
package series

import (
	"encoding/binary"
	"errors"
	"strings"
)

// Stat summarises the samples of a period.
type Stat struct{ Count, Sum, Min, Max float64 }

// Of returns the Stat of one sample.
func Of(value float64) Stat { return Stat{1, value, value, value} }

// Add adds the samples of another period.
func (s *Stat) Add(x Stat) {
	if s.Count == 0 {
		*s = x
		return
	}
	if x.Count == 0 {
		return
	}
	s.Count += x.Count
	s.Sum += x.Sum
	s.Min = min(s.Min, x.Min)
	s.Max = max(s.Max, x.Max)
}

// single reports whether the Stat is that of one sample.
func (s Stat) single() bool { return s == Of(s.Sum) }

// Total is the sum of all samples of a series since its start.
type Total struct {
	Count, Sum float64
	Buckets    []uint64 // of a duration, not cumulative
}

func (t *Total) add(p *Point) {
	t.Count += p.Count
	t.Sum += p.Sum
	for i, n := range p.Buckets {
		if i >= len(t.Buckets) {
			t.Buckets = append(t.Buckets, 0)
		}
		t.Buckets[i] += n
	}
}

// Dimension is a part of a series' identity.
type Dimension struct{ Name, Value string }

// Key identifies a series: the name of a metric, and dimensions. MakeKey makes it.
type Key string

// MakeKey returns the key of a metric with dimensions, whose order matters.
func MakeKey(metric string, dimensions ...Dimension) Key {
	var b []byte
	for _, d := range dimensions {
		b = appendText(appendText(b, d.Name), d.Value)
	}
	return Key(append(appendText(nil, metric), b...))
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errKey = errors.New("malformed key of a series")

// Parse returns the parts of a key.
func (k Key) Parse() (metric string, dimensions []Dimension, err error) {
	var parts []string
	for rest := string(k); rest != ""; {
		n, used := binary.Uvarint([]byte(rest[:min(len(rest), binary.MaxVarintLen64)]))
		if used <= 0 || n > uint64(len(rest)-used) {
			return "", nil, errKey
		}
		parts = append(parts, strings.Clone(rest[used:used+int(n)]))
		rest = rest[used+int(n):]
	}
	if len(parts)%2 != 1 {
		return "", nil, errKey
	}
	for i := 1; i < len(parts); i += 2 {
		dimensions = append(dimensions, Dimension{parts[i], parts[i+1]})
	}
	return parts[0], dimensions, nil
}

// Point is a series' contribution to a minute.
type Point struct {
	Key Key
	Stat
	Counts  bool     // the series is a counter or a duration: it has a Total
	Buckets []uint64 // of a duration: the samples of this minute, by bucket
}
