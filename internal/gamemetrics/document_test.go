package gamemetrics

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the document anew")

// The document in the repository matches the table.
func TestDocument(t *testing.T) {
	const path = "../../docs/metrics.md"
	if *update {
		if err := os.WriteFile(path, []byte(Document()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != Document() {
		t.Errorf("%s is not that of the table (%v): go test ./internal/gamemetrics -run Document -update", path, err)
	}
}

func TestNamesDiffer(t *testing.T) {
	names := map[string]bool{}
	for _, d := range Table {
		if names[d.Prometheus()] {
			t.Errorf("two metrics are %s", d.Prometheus())
		}
		names[d.Prometheus()] = true
	}
	for name, want := range map[*Definition]string{timeToMatch: "gamelift_time_to_match_seconds", placementsSucceeded: "gamelift_placements_succeeded_total", queueDepth: "gamelift_queue_depth", locationDepth: "gamelift_location_queue_depth"} {
		if got := name.Prometheus(); got != want {
			t.Errorf("%s is %s, want %s", name.Name, got, want)
		}
	}
}
