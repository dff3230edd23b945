package cloudwatch

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/gamemetrics"
	"github.com/musterhq/muster/internal/series"
)

// query selects the values of one or more series.
type query struct {
	id, label string
	stat      string
	unit      string
	period    int64 // minutes
	series    []named
	many      bool // a search: each result needs its own name
}

// named is a series with its metric and dimensions.
type named struct {
	key        series.Key
	metric     string
	dimensions []series.Dimension
}

// expression matches SEARCH, alone or in REMOVE_EMPTY, in the form that data sources for CloudWatch use. All other expressions are metric math.
//
//	SEARCH('{AWS/GameLift,FleetId,Location} MetricName="ActiveInstances" FleetId=("a" OR "b")', 'Average', 60)
var expression = regexp.MustCompile(`^\s*(REMOVE_EMPTY\()?\s*SEARCH\(\s*'([^']*)'\s*,\s*'([^']*)'\s*(?:,\s*([0-9]+)\s*)?\)\s*(\))?\s*$`)

// condition is one term of a search: a name must have one of some values.
type condition struct {
	name   string
	values []string
}

// search is the first argument of SEARCH.
type search struct {
	schema     []string // the names of the dimensions, and no others; nil: any
	conditions []condition
}

var term = regexp.MustCompile(`^\s*("[^"]*"|[A-Za-z:][A-Za-z0-9_.:-]*)\s*=\s*(\([^()]*\)|"[^"]*"|[^\s()"]+)`)

func parseSearch(text string) (s search, err error) {
	rest := strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(rest, "{"); ok {
		schema, after, closed := strings.Cut(inner, "}")
		if !closed {
			return s, invalid("SEARCH: the schema has no closing brace: %s", clip(text))
		}
		parts := strings.Split(schema, ",")
		for i, p := range parts {
			parts[i] = strings.Trim(strings.TrimSpace(p), `"`)
		}
		s.conditions = append(s.conditions, condition{"Namespace", parts[:1]})
		s.schema, rest = append([]string{}, parts[1:]...), strings.TrimSpace(after)
	}
	for rest != "" {
		m := term.FindStringSubmatch(rest)
		if m == nil {
			return s, invalid("SEARCH: want terms such as MetricName=\"ActiveInstances\" or FleetId=(\"a\" OR \"b\"), one after the other, got %s", clip(rest))
		}
		c := condition{name: strings.Trim(m[1], `"`)}
		value := m[2]
		if inner, ok := strings.CutPrefix(value, "("); ok {
			value = strings.TrimSuffix(inner, ")")
		}
		for v := range strings.SplitSeq(value, " OR ") {
			c.values = append(c.values, strings.Trim(strings.TrimSpace(v), `"`))
		}
		s.conditions = append(s.conditions, c)
		rest = strings.TrimSpace(rest[len(m[0]):])
		if after, ok := strings.CutPrefix(rest, "AND "); ok {
			rest = strings.TrimSpace(after)
		}
	}
	return s, nil
}

// matches reports whether the search selects a series.
func (s *search) matches(n *named) bool {
	if s.schema != nil {
		if len(s.schema) != len(n.dimensions) {
			return false
		}
		for _, d := range n.dimensions {
			if !slices.Contains(s.schema, d.Name) {
				return false
			}
		}
	}
	for _, c := range s.conditions {
		value := ""
		switch strings.TrimPrefix(c.name, ":aws.") {
		case "Namespace":
			value = Namespace
		case "MetricName":
			value = n.metric
		default:
			i := slices.IndexFunc(n.dimensions, func(d series.Dimension) bool { return d.Name == c.name })
			if i < 0 {
				return false
			}
			value = n.dimensions[i].Value
		}
		if !slices.Contains(c.values, value) {
			return false
		}
	}
	return true
}

// searchFor returns the series that an expression selects.
func searchFor(text string, all func() []named) (q query, err error) {
	m := expression.FindStringSubmatch(text)
	if m == nil || (m[1] == "") != (m[5] == "") {
		return q, invalid("The expression %s is metric math, which this service does not compute. Query the metrics themselves, or with SEARCH('…', 'Average', 300).", clip(text))
	}
	s, err := parseSearch(m[2])
	if err != nil {
		return q, err
	}
	q.stat, q.many = m[3], true
	if m[4] != "" {
		var seconds int64
		fmt.Sscan(m[4], &seconds) //nolint:errcheck // digits only; one that is too large is refused as a period
		if q.period, err = periodOf(seconds, "the period of SEARCH"); err != nil {
			return q, err
		}
	}
	for _, n := range all() {
		if s.matches(&n) {
			q.series = append(q.series, n)
		}
	}
	return q, nil
}

// all returns the series with samples in the last two weeks, in the order of their names.
func (d *Door) all() []named {
	var all []named
	d.config.Store.Keys(d.config.Store.Last()-recent, func(k series.Key) bool {
		if metric, dimensions, err := k.Parse(); err == nil && ofTheNamespace(metric) {
			all = append(all, named{k, metric, dimensions})
		}
		return true
	})
	slices.SortFunc(all, func(a, b named) int { return strings.Compare(string(a.key), string(b.key)) })
	return all
}

// ofTheNamespace reports whether a stored series has a metric of the GameLift service, and not one of Muster itself.
func ofTheNamespace(metric string) bool {
	return slices.ContainsFunc(gamemetrics.Table, func(d *gamemetrics.Definition) bool { return d.Is(metric) })
}

// recent is how long a metric is listed after its last sample, in minutes, as for the cloud service.
const recent = 14 * 24 * 60

var property = regexp.MustCompile(`\$\{(LABEL|PROP\('([^']*)'\))\}`)

// labelOf returns the label of a series: the caller's label with its dynamic parts filled in, or the name of the metric, which a search extends by the dimensions.
func (q *query) labelOf(n *named) string {
	plain := n.metric
	if q.many {
		for _, d := range n.dimensions {
			plain += " " + d.Value
		}
	}
	if q.label == "" {
		return plain
	}
	label := property.ReplaceAllStringFunc(q.label, func(part string) string {
		name := property.FindStringSubmatch(part)[2]
		if dimension, ok := strings.CutPrefix(name, "Dim."); ok {
			for _, d := range n.dimensions {
				if d.Name == dimension {
					return d.Value
				}
			}
			return ""
		}
		switch name {
		case "":
			return plain
		case "MetricName":
			return n.metric
		case "Namespace":
			return Namespace
		case "Stat":
			return q.stat
		case "Period":
			return fmt.Sprint(q.period * 60)
		}
		return ""
	})
	if q.many && label == q.label {
		label += " " + plain
	}
	return label
}
