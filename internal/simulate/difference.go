package simulate

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"
)

// Difference is a ticket whose outcome differs between two rule sets.
type Difference struct {
	Arrival  *Arrival
	One, Two Outcome
}

// Differences counts and lists the differences between the outcomes of the same arrivals.
type Differences struct {
	Gained, Lost  int          // matched by the second only, by the first only
	Sooner, Later int          // matched by both, a second or more apart
	All           []Difference // first those that only one matches, then by the difference of the waits
}

// apart is the smallest difference of two waits that counts.
const apart = time.Second

// Compare compares the outcomes of arrivals with two rule sets.
func Compare(arrivals []Arrival, one, two []Outcome) (d Differences) {
	for i := range arrivals {
		x := Difference{&arrivals[i], one[i], two[i]}
		switch a, b := x.One.Ending == Matched, x.Two.Ending == Matched; {
		case !a && b:
			d.Gained++
		case a && !b:
			d.Lost++
		case a && b && x.One.Wait-x.Two.Wait >= apart:
			d.Sooner++
		case a && b && x.Two.Wait-x.One.Wait >= apart:
			d.Later++
		default:
			continue
		}
		d.All = append(d.All, x)
	}
	slices.SortStableFunc(d.All, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(b.gap(), a.gap()))
	})
	return d
}

func (x *Difference) rank() int {
	if x.One.Ending != x.Two.Ending {
		return 0
	}
	return 1
}

func (x *Difference) gap() time.Duration { return (x.One.Wait - x.Two.Wait).Abs() }

// String describes the outcome.
func (o Outcome) String() string {
	return string(o.Ending) + " after " + short(o.Wait.Seconds()) + " s"
}

// Summary describes the differences in two sentences.
func (d *Differences) Summary() string {
	return fmt.Sprintf("Only the second matches %s of the tickets, only the first %s. Of those that both match, %s wait at least a second less with the second, and %s at least a second more.",
		whole(d.Gained), whole(d.Lost), whole(d.Sooner), whole(d.Later))
}

// WriteDifferences lists up to most of the tickets that end differently, for a terminal.
func WriteDifferences(w io.Writer, d *Differences, most int) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, d.Summary())
	for _, x := range d.All[:min(most, len(d.All))] {
		fmt.Fprintf(out, "%q at %s: %s, then %s\n", x.Arrival.Ticket, clock(x.Arrival.At.Seconds()), x.One, x.Two)
	}
	return out.Flush()
}
