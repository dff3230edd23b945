package search

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// hall has the game sessions of a script.
type hall struct{ rows []Row }

// TestScripts plays the scripts in testdata: "session" adds a game session, "filter" lists those that a filter selects, "sort" lists all
// in an order.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		h := &hall{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "session":
				h.add(t, d)
				return ""
			case "filter":
				f, err := ParseFilter(strings.TrimSuffix(d.Input, "\n"))
				if err != nil {
					return err.Error()
				}
				return h.list(slices.Values(h.chosen(f)))
			case "sort":
				o, err := ParseOrder(strings.TrimSuffix(d.Input, "\n"))
				if err != nil {
					return err.Error()
				}
				sorted := slices.SortedFunc(slices.Values(h.rows), func(a, b Row) int { return o.Compare(o.PlaceOf(a), o.PlaceOf(b)) })
				return h.list(slices.Values(sorted))
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

// add reads: session id=a name=x players=1/4 created=5 deny, and properties as lines "key=value".
func (h *hall) add(t *testing.T, d *datadriven.TestData) {
	r := Row{Created: 1, PlayersMax: 4}
	properties := map[string]string{}
	for _, arg := range d.CmdArgs {
		value := strings.Join(arg.Vals, "")
		switch arg.Key {
		case "id":
			r.ID = "fleet-1/custom-home/" + value
		case "name":
			r.Name = value
		case "players":
			if _, err := fmt.Sscanf(value, "%d/%d", &r.Players, &r.PlayersMax); err != nil {
				t.Fatal(err)
			}
		case "created":
			r.Created, _ = strconv.ParseInt(value, 10, 64)
		case "deny":
			r.DenyPlayers = true
		}
	}
	for line := range strings.Lines(d.Input) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key {
		case "":
		case "name":
			r.Name = value
		default:
			properties[key] = value
		}
	}
	r.Property = func(key string) (string, bool) { v, ok := properties[key]; return v, ok }
	h.rows = append(h.rows, r)
}

func (h *hall) chosen(f Filter) []Row {
	return slices.DeleteFunc(slices.Clone(h.rows), func(r Row) bool { return !f.Match(r) })
}

func (h *hall) list(rows func(func(Row) bool)) string {
	var names []string
	for r := range rows {
		names = append(names, r.ID[strings.LastIndexByte(r.ID, '/')+1:])
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, " ")
}
