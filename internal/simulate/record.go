package simulate

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain/matcher"
	"github.com/musterhq/muster/internal/domain/ruleset"
)

const (
	lineMax    = 1 << 20
	secondsMax = 366 * 24 * 3600
	partyMax   = 10 // as StartMatchmaking takes
)

// recorded is one line of recorded arrivals.
type recorded struct {
	At      *float64         `json:"at"` // seconds since the beginning
	Ticket  string           `json:"ticket"`
	Players []recordedPlayer `json:"players"`
	Leaves  *float64         `json:"leaves,omitempty"` // seconds since the beginning
}

type recordedPlayer struct {
	ID         string                     `json:"id"`
	Attributes map[string]json.RawMessage `json:"attributes,omitempty"`
	Latencies  map[string]int32           `json:"latencyInMs,omitempty"`
}

// ReadLines reads arrivals, one JSON object per line: {"at": seconds, "ticket": …, "players": [{"id", "attributes",
// "latencyInMs"}], "leaves": seconds}, where leaves is optional. Attributes are plain JSON: a number, a string, a list of strings, or a map of numbers.
func ReadLines(r io.Reader) ([]Arrival, error) {
	var arrivals []Arrival
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, lineMax)
	seen := map[string]bool{}
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		a, err := readLine(lines.Bytes())
		if err == nil && seen[a.Ticket] {
			err = fmt.Errorf("ticket: %q occurs on an earlier line", a.Ticket)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		seen[a.Ticket] = true
		arrivals = append(arrivals, a)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("after %d arrivals: %w", len(arrivals), err)
	}
	inOrder(arrivals)
	return arrivals, nil
}

func readLine(line []byte) (Arrival, error) {
	var x recorded
	d := json.NewDecoder(strings.NewReader(string(line)))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		return Arrival{}, err
	}
	switch {
	case x.At == nil:
		return Arrival{}, errors.New("at: missing, want seconds since the beginning")
	case x.Ticket == "":
		return Arrival{}, errors.New("ticket: missing, want an id of its own")
	case len(x.Players) == 0 || len(x.Players) > partyMax:
		return Arrival{}, fmt.Errorf("players: %d, want 1 to %d", len(x.Players), partyMax)
	}
	at, err := seconds(*x.At)
	if err != nil {
		return Arrival{}, fmt.Errorf("at: %w", err)
	}
	a := Arrival{At: at, Ticket: x.Ticket}
	if x.Leaves != nil {
		if a.Leaves, err = seconds(*x.Leaves); err != nil {
			return Arrival{}, fmt.Errorf("leaves: %w", err)
		}
		if a.Leaves <= at {
			return Arrival{}, fmt.Errorf("leaves: %g, want more than at, which is %g", *x.Leaves, *x.At)
		}
	}
	for i, p := range x.Players {
		if p.ID == "" {
			return Arrival{}, fmt.Errorf("players[%d].id: missing", i)
		}
		player := Player{ID: p.ID}
		for _, name := range slices.Sorted(maps.Keys(p.Attributes)) {
			v, err := plainValue(p.Attributes[name])
			if err != nil {
				return Arrival{}, fmt.Errorf("players[%d].attributes.%s: %w", i, name, err)
			}
			player.Attributes = append(player.Attributes, ruleset.NamedValue{Name: name, Value: v})
		}
		for _, region := range slices.Sorted(maps.Keys(p.Latencies)) {
			ms := p.Latencies[region]
			if ms < 1 {
				return Arrival{}, fmt.Errorf("players[%d].latencyInMs.%s: %d, want at least 1", i, region, ms)
			}
			player.Latencies = append(player.Latencies, matcher.Latency{Region: region, Milliseconds: ms})
		}
		a.Players = append(a.Players, player)
	}
	return a, nil
}

func seconds(s float64) (time.Duration, error) {
	if !(s >= 0 && s <= secondsMax) {
		return 0, fmt.Errorf("%g, want 0 to %d seconds", s, secondsMax)
	}
	return time.Duration(math.Round(s*1000)) * time.Millisecond, nil
}

// plainValue parses an attribute in plain JSON.
func plainValue(text json.RawMessage) (ruleset.Value, error) {
	var number float64
	var word string
	var list []string
	var pairs map[string]float64
	switch {
	case string(text) == "null":
	case json.Unmarshal(text, &number) == nil:
		return ruleset.Value{Kind: ruleset.Number, Number: number}, nil
	case json.Unmarshal(text, &word) == nil:
		return ruleset.Value{Kind: ruleset.String, Text: word}, nil
	case json.Unmarshal(text, &list) == nil:
		return ruleset.ListOf(list), nil
	case json.Unmarshal(text, &pairs) == nil:
		return ruleset.MapOf(pairs), nil
	}
	return ruleset.Value{}, fmt.Errorf("%s, want a number, a string, a list of strings, or a map of numbers", text)
}

// WriteLines writes arrivals in the format of ReadLines.
func WriteLines(w io.Writer, arrivals []Arrival) error {
	out := bufio.NewWriter(w)
	lines := json.NewEncoder(out)
	for i := range arrivals {
		at := arrivals[i].At.Seconds()
		x := recorded{At: &at, Ticket: arrivals[i].Ticket}
		if arrivals[i].Leaves != 0 {
			leaves := arrivals[i].Leaves.Seconds()
			x.Leaves = &leaves
		}
		for _, p := range arrivals[i].Players {
			y := recordedPlayer{ID: p.ID, Attributes: map[string]json.RawMessage{}, Latencies: map[string]int32{}}
			for _, a := range p.Attributes {
				text, err := json.Marshal(plain(&a.Value))
				if err != nil {
					return fmt.Errorf("ticket %s: attribute %s: %w", x.Ticket, a.Name, err)
				}
				y.Attributes[a.Name] = text
			}
			for _, l := range p.Latencies {
				y.Latencies[l.Region] = l.Milliseconds
			}
			x.Players = append(x.Players, y)
		}
		if err := lines.Encode(&x); err != nil {
			return err
		}
	}
	return out.Flush()
}

func plain(v *ruleset.Value) any {
	switch v.Kind {
	case ruleset.Number:
		return v.Number
	case ruleset.String:
		return v.Text
	case ruleset.List:
		return v.List
	case ruleset.Map:
		pairs := make(map[string]float64, len(v.Map))
		for _, e := range v.Map {
			pairs[e.Key] = e.Number
		}
		return pairs
	}
	return nil
}

// ReadTable reads arrivals as CSV, with one line per player. The columns at (seconds) and ticket are required; the players of one
// party have the same ticket. The columns player, attribute names and latency:REGION are optional. The type in the rule set
// determines the form of a cell: a list is written a|b|c, a map a=1|b=2, and an empty cell is no value.
func ReadTable(r io.Reader, kinds map[string]ruleset.Kind) ([]Arrival, error) {
	table := csv.NewReader(r)
	table.ReuseRecord = true
	head, err := table.Read()
	if err != nil {
		return nil, fmt.Errorf("first line, the names of the columns: %w", err)
	}
	columns := slices.Clone(head)
	for _, needed := range []string{"at", "ticket"} {
		if !slices.Contains(columns, needed) {
			return nil, fmt.Errorf("first line: no column %q", needed)
		}
	}
	var arrivals []Arrival
	place := map[string]int{}
	for {
		row, err := table.Read()
		if errors.Is(err, io.EOF) {
			inOrder(arrivals)
			return arrivals, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := table.FieldPos(0)
		a, p, err := readRow(columns, row, kinds)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		i, known := place[a.Ticket]
		if !known {
			i = len(arrivals)
			place[a.Ticket] = i
			arrivals = append(arrivals, a)
		}
		party := &arrivals[i]
		switch {
		case party.At != a.At:
			return nil, fmt.Errorf("line %d: at: %g, but ticket %s came at %g", line, a.At.Seconds(), a.Ticket, party.At.Seconds())
		case len(party.Players) == partyMax:
			return nil, fmt.Errorf("line %d: ticket %s has more than %d players", line, a.Ticket, partyMax)
		}
		p.ID = cmp.Or(p.ID, a.Ticket+"-"+strconv.Itoa(len(party.Players)+1))
		party.Players = append(party.Players, p)
	}
}

func readRow(columns, row []string, kinds map[string]ruleset.Kind) (a Arrival, p Player, err error) {
	for i, name := range columns {
		cell := strings.Clone(row[i])
		switch region, isLatency := strings.CutPrefix(name, "latency:"); {
		case name == "at":
			s, bad := strconv.ParseFloat(cell, 64)
			if bad != nil {
				return a, p, fmt.Errorf("at: %q, want seconds since the beginning", cell)
			}
			if a.At, err = seconds(s); err != nil {
				return a, p, fmt.Errorf("at: %w", err)
			}
		case name == "ticket":
			if a.Ticket = cell; cell == "" {
				return a, p, errors.New("ticket: empty")
			}
		case name == "player":
			p.ID = cell
		case cell == "":
		case isLatency:
			ms, bad := strconv.ParseInt(cell, 10, 32)
			if bad != nil || ms < 1 {
				return a, p, fmt.Errorf("%s: %q, want milliseconds, at least 1", name, cell)
			}
			p.Latencies = append(p.Latencies, matcher.Latency{Region: region, Milliseconds: int32(ms)})
		default:
			v, err := cellValue(cell, kinds[name])
			if err != nil {
				return a, p, fmt.Errorf("%s: %w", name, err)
			}
			if v.Kind != ruleset.None {
				p.Attributes = append(p.Attributes, ruleset.NamedValue{Name: name, Value: v})
			}
		}
	}
	slices.SortFunc(p.Latencies, func(a, b matcher.Latency) int { return strings.Compare(a.Region, b.Region) })
	return a, p, nil
}

// cellValue parses a cell of a declared attribute. Other columns are ignored, as the service ignores other attributes.
func cellValue(cell string, kind ruleset.Kind) (ruleset.Value, error) {
	v := ruleset.Value{Kind: kind}
	switch kind {
	case ruleset.Number:
		n, err := strconv.ParseFloat(cell, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return v, fmt.Errorf("%q, want a number", cell)
		}
		v.Number = n
	case ruleset.String:
		v.Text = cell
	case ruleset.List:
		v = ruleset.ListOf(strings.Split(cell, "|"))
	case ruleset.Map:
		pairs := make(map[string]float64)
		for pair := range strings.SplitSeq(cell, "|") {
			key, text, _ := strings.Cut(pair, "=")
			n, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || key == "" {
				return v, fmt.Errorf("%q, want key=number|key=number", cell)
			}
			pairs[key] = n
		}
		v = ruleset.MapOf(pairs)
	}
	return v, nil
}
