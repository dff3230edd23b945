package bench

import (
	"math/bits"
	"time"
)

// histogram counts durations in classes with a relative width of at most 1/64, so that a quantile is off by less than 2 %.
type histogram struct {
	counts [58 << 6]uint32
	total  uint64
}

func (h *histogram) add(d time.Duration) {
	h.counts[class(uint64(max(d, 0)))]++
	h.total++
}

// class returns the number of a value's class, from its leading 7 bits; below 128 every value has its own class.
func class(v uint64) int {
	shift := max(bits.Len64(v)-7, 0)
	return shift<<6 + int(v>>shift)
}

// classEnd returns the largest value of a class.
func classEnd(c int) time.Duration {
	if c < 128 {
		return time.Duration(c)
	}
	shift := c>>6 - 1
	return time.Duration((c-shift<<6+1)<<shift - 1)
}

func (h *histogram) merge(other *histogram) {
	for i, n := range &other.counts {
		h.counts[i] += n
	}
	h.total += other.total
}

// quantile returns the duration that a share q of all do not exceed; 0 if there are none.
func (h *histogram) quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.total))
	seen := uint64(0)
	for c, n := range &h.counts {
		if seen += uint64(n); n > 0 && seen > min(rank, h.total-1) {
			return classEnd(c)
		}
	}
	return 0
}
