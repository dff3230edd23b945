package metrics

import (
	"maps"
	"regexp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

var fqName = regexp.MustCompile(`fqName: "([^"]+)"`)

// Names returns the names of all metrics of the door, including those without a value yet.
func (d *Door) Names() []string {
	described := make(chan *prometheus.Desc)
	go func() {
		d.registry.Describe(described)
		close(described)
	}()
	names := map[string]bool{}
	for desc := range described {
		if m := fqName.FindStringSubmatch(desc.String()); m != nil { // a Desc offers no other access to its name
			names[m[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
