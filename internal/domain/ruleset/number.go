package ruleset

import (
	"math"
	"slices"
)

// tolerance is the relative difference, of the larger number or of 1, up to which computed numbers are equal: the average of three thirds
// must not fail a maximum distance of 0.
const tolerance = 1e-9

// near reports whether computed numbers are equal.
func near(a, b float64) bool {
	return a == b || math.Abs(a-b) < tolerance*max(1, math.Abs(a), math.Abs(b))
}

// AtMost reports whether a distance is not above a bound, with the tolerance that all rules have.
func AtMost(x, bound float64) bool { return x <= bound || x-bound < tolerance*max(1, x, bound) }

// AtLeast reports whether a distance is not below a bound.
func AtLeast(x, bound float64) bool { return x >= bound || bound-x < tolerance*max(1, x, bound) }

// Holds reports whether the relation holds for two numbers. Computed ones are equal within the tolerance.
func (op Operation) Holds(a, b float64, computed bool) bool {
	equal := a == b || computed && near(a, b)
	switch op {
	case Less:
		return a < b && !equal
	case LessOrEqual:
		return a < b || equal
	case Equal:
		return equal
	case NotEqual:
		return !equal
	case Greater:
		return a > b && !equal
	default:
		return a > b || equal
	}
}

// HoldsText reports whether the relation holds for two strings, compared by code points.
func (op Operation) HoldsText(a, b string) bool {
	switch op {
	case Less:
		return a < b
	case LessOrEqual:
		return a <= b
	case Equal:
		return a == b
	case NotEqual:
		return a != b
	case Greater:
		return a > b
	default:
		return a >= b
	}
}

// Hold reports whether a distance is within the bounds.
func (b *Bounds) Hold(distance float64) bool {
	return (!b.HasMin || AtLeast(distance, b.Min)) && (!b.HasMax || AtMost(distance, b.Max))
}

// holdCount is Hold for a count.
func (b *Bounds) holdCount(n int) bool {
	return (!b.HasMin || float64(n) >= b.Min) && (!b.HasMax || float64(n) <= b.Max)
}

// Of aggregates a party's numbers, of which there is at least one.
func (a Aggregation) Of(numbers []float64) float64 {
	switch a {
	case Min:
		return slices.Min(numbers)
	case Max:
		return slices.Max(numbers)
	default:
		return mean(numbers)
	}
}

func mean(numbers []float64) float64 {
	if len(numbers) == 1 {
		return numbers[0]
	}
	return sum(numbers) / float64(len(numbers))
}

func sum(numbers []float64) (total float64) {
	for _, x := range numbers {
		total += x
	}
	return total
}

// fold applies a function to a list of numbers. Only sum has a value for an empty list, and a result too large for a double is no value.
func fold(op Op, numbers []float64) (x float64, ok bool) {
	if len(numbers) == 0 {
		return 0, op == OpSum
	}
	switch op {
	case OpMin:
		x = slices.Min(numbers)
	case OpMax:
		x = slices.Max(numbers)
	case OpAvg:
		x = mean(numbers)
	case OpMedian:
		x = median(numbers)
	case OpSum:
		x = sum(numbers)
	case OpStddev:
		x = deviation(numbers)
	}
	return x, finite(x)
}

func median(numbers []float64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// deviation divides by n, because the match is the whole population, not a sample.
func deviation(numbers []float64) float64 {
	middle, squares := mean(numbers), 0.0
	for _, x := range numbers {
		d := x - middle
		squares += float64(d * d) // the conversion prevents a fused multiply-add, which rounds differently
	}
	return math.Sqrt(squares / float64(len(numbers)))
}
