package metrics

import (
	"maps"
	"regexp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

var fqName = regexp.MustCompile(`fqName: "([^"]+)"`)

// Names lists the names of all metrics that the door can show, also of those without a value yet.
func (d *Door) Names() []string {
	described := make(chan *prometheus.Desc)
	go func() {
		d.registry.Describe(described)
		close(described)
	}()
	names := map[string]bool{}
	for desc := range described {
		if m := fqName.FindStringSubmatch(desc.String()); m != nil { // a Desc has no other way to its name
			names[m[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
