package problem

import (
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/playerapi/objects"
)

// ParseID parses an identifier from a field of a request.
func ParseID[T interface{ domain.ID[K] }, K domain.Kind](field, text string) (T, error) {
	id, err := domain.ParseID[T, K](text)
	if err != nil {
		return id, Invalid(field, "%.60q, %v", text, err)
	}
	return id, nil
}

// ParseNumber parses the number of an event from a query.
func ParseNumber(query url.Values, field string) (n uint64, given bool, problem *Problem) {
	text := query.Get(field)
	if text == "" {
		return 0, false, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, false, Invalid(field, "%.30q, want the number of an event", text)
	}
	return n, true, nil
}

// CheckSize refuses an object of more than most bytes.
func CheckSize(field string, o *objects.Object, most int) error {
	if o != nil && len(*o) > most {
		return Invalid(field, "%d bytes, want at most %d", len(*o), most)
	}
	return nil
}

const (
	latenciesMax = 64 // regions for which a client reports its latency
	regionMax    = 64 // bytes of the name of a region
)

// CheckRegions refuses names of regions that are empty or too long.
func CheckRegions(names []string) error {
	for _, name := range names {
		if len(name) == 0 || len(name) > regionMax {
			return Invalid("regions", "%.64q: %d bytes, want 1 to %d", name, len(name), regionMax)
		}
	}
	return nil
}

// Latencies checks the latencies that a client has measured.
func Latencies(measured map[string]int32) ([]flow.Latency, error) {
	if len(measured) > latenciesMax {
		return nil, Invalid("latency_ms", "%d regions, want at most %d", len(measured), latenciesMax)
	}
	all := make([]flow.Latency, 0, len(measured))
	for _, region := range slices.Sorted(maps.Keys(measured)) {
		if ms := measured[region]; ms < 0 || len(region) == 0 || len(region) > regionMax {
			return nil, Invalid("latency_ms", "%.64q: %d, want a region and a time that is not negative", region, ms)
		}
		all = append(all, flow.Latency{Region: region, Milliseconds: measured[region]})
	}
	return all, nil
}
