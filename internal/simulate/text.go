package simulate

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"
)

// WriteTable writes reports about the same arrivals side by side, for a terminal: labels on the left, figures on the right.
func WriteTable(w io.Writer, reports ...*Report) error {
	all := lines(reports)
	label, cells := 0, make([]int, len(reports))
	for _, l := range all {
		label = max(label, utf8.RuneCountInString(l.Label))
		for i, c := range l.Cells {
			cells[i] = max(cells[i], utf8.RuneCountInString(c))
		}
	}
	out := bufio.NewWriter(w)
	for _, l := range all {
		fmt.Fprintf(out, "%-*s", label, l.Label)
		for i, c := range l.Cells {
			fmt.Fprintf(out, "   %*s", cells[i], c)
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

func lines(reports []*Report) (out []Figure) {
	add := func(label string, cell func(*Report) string) {
		l := Figure{Label: label}
		for _, r := range reports {
			l.Cells = append(l.Cells, cell(r))
		}
		out = append(out, l)
	}
	add("rule set", func(r *Report) string { return r.RuleSet })
	add("tickets", func(r *Report) string { return whole(r.Tickets.Arrived) })
	add("  matched", func(r *Report) string { return share(r.Tickets.Matched, r.Tickets.Arrived) })
	add("  timed out", func(r *Report) string { return share(r.Tickets.TimedOut, r.Tickets.Arrived) })
	if slices.ContainsFunc(reports, func(r *Report) bool { return r.Tickets.Left > 0 }) {
		add("  left before", func(r *Report) string { return share(r.Tickets.Left, r.Tickets.Arrived) })
	}
	add("  could never match", func(r *Report) string { return share(r.Tickets.Unmatchable, r.Tickets.Arrived) })
	for _, attribute := range lacksIn(reports) {
		label := "    party too large"
		if attribute != "" {
			label = "    no value for " + attribute
		}
		add(label, func(r *Report) string { return withLack(r, attribute) })
	}
	add("players", func(r *Report) string { return whole(r.Players.Arrived) })
	add("matches", func(r *Report) string { return whole(r.Matches.Count) })
	add("  full", func(r *Report) string { return share(r.Matches.Full, r.Matches.Count) })
	add("  players in one", func(r *Report) string { return short(r.Matches.Players) })
	for _, x := range []struct {
		label string
		of    func(Spread) float64
	}{
		{"wait: mean", func(s Spread) float64 { return s.Mean }}, {"  median", func(s Spread) float64 { return s.P50 }},
		{"  p90", func(s Spread) float64 { return s.P90 }}, {"  p95", func(s Spread) float64 { return s.P95 }},
		{"  p99", func(s Spread) float64 { return s.P99 }}, {"  longest", func(s Spread) float64 { return s.Max }},
	} {
		add(x.label, func(r *Report) string { return short(x.of(r.Wait)) + " s" })
	}
	for _, q := range numbersIn(reports) {
		add(q+": spread in a match, median", func(r *Report) string { return ofNumber(r, q, func(n NumberQuality) float64 { return n.Within.P50 }) })
		add("  p95", func(r *Report) string { return ofNumber(r, q, func(n NumberQuality) float64 { return n.Within.P95 }) })
		add("  between teams, median", func(r *Report) string { return ofNumber(r, q, func(n NumberQuality) float64 { return n.Teams.P50 }) })
		add("  p95", func(r *Report) string { return ofNumber(r, q, func(n NumberQuality) float64 { return n.Teams.P95 }) })
	}
	for _, q := range wordsIn(reports) {
		add(q+": the same for all", func(r *Report) string { return ofWord(r, q) })
	}
	if latencies(reports) {
		add("latency of the farthest, median", func(r *Report) string { return ofLatency(r, func(l *LatencyQuality) float64 { return l.Worst.P50 }) })
		add("  p95", func(r *Report) string { return ofLatency(r, func(l *LatencyQuality) float64 { return l.Worst.P95 }) })
		add("  no region for all", func(r *Report) string { return withoutRegion(r) })
	}
	for _, wait := range waitsIn(reports) {
		add(fmt.Sprintf("matches made from %d s on", wait), func(r *Report) string { return atLevel(r, wait) })
	}
	return out
}

// waitsIn returns all waits of the reports' expansions, sorted.
func waitsIn(reports []*Report) []int32 {
	return union(reports, func(r *Report) []LevelUse { return r.Levels }, func(l LevelUse) int32 { return l.Wait }, true)
}

func lacksIn(reports []*Report) []string {
	return union(reports, func(r *Report) []Lack { return r.Lacks }, func(l Lack) string { return l.Attribute }, true)
}

func withLack(r *Report, attribute string) string {
	for _, l := range r.Lacks {
		if l.Attribute == attribute {
			return share(l.Tickets, r.Tickets.Arrived)
		}
	}
	return absent
}

func numbersIn(reports []*Report) []string {
	return union(reports, func(r *Report) []NumberQuality { return r.Numbers }, func(n NumberQuality) string { return n.Name }, false)
}

func wordsIn(reports []*Report) []string {
	return union(reports, func(r *Report) []WordQuality { return r.Words }, func(n WordQuality) string { return n.Name }, false)
}

func latencies(reports []*Report) bool {
	for _, r := range reports {
		if r.Latency != nil {
			return true
		}
	}
	return false
}

const absent = "–"

func ofNumber(r *Report, name string, of func(NumberQuality) float64) string {
	for _, n := range r.Numbers {
		if n.Name == name && n.Within.Count > 0 {
			return short(of(n))
		}
	}
	return absent
}

func ofWord(r *Report, name string) string {
	for _, w := range r.Words {
		if w.Name == name {
			return share(w.Same, r.Matches.Count)
		}
	}
	return absent
}

func ofLatency(r *Report, of func(*LatencyQuality) float64) string {
	if r.Latency == nil || r.Latency.Worst.Count == 0 {
		return absent
	}
	return short(of(r.Latency)) + " ms"
}

func withoutRegion(r *Report) string {
	if r.Latency == nil {
		return absent
	}
	return share(r.Latency.WithoutRegion, r.Matches.Count)
}

func atLevel(r *Report, wait int32) string {
	for _, l := range r.Levels {
		if l.Wait == wait {
			return share(l.Matches, r.Matches.Count)
		}
	}
	return absent
}

func share(part, of int) string {
	if of == 0 {
		return absent
	}
	return fmt.Sprintf("%s (%.1f %%)", whole(part), 100*float64(part)/float64(of))
}

// whole writes 1234567 as 1,234,567.
func whole(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// short writes a number with the decimal places that matter.
func short(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}
