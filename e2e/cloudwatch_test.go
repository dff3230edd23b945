package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/waittest"
)

// The AWS CLI reads the kept metrics, as an operator of fleets in the cloud does.
func TestMetricsWithAWSCLI(t *testing.T) {
	t.Parallel()
	s := startService(t, "--virtual-clock")
	p := s.prepare()
	p.ready(sdkOptions{})
	c := newCLI(s)
	ask := func(args ...string) object {
		t.Helper()
		out, errs, err := c.aws(append([]string{"cloudwatch"}, args...)...)
		if err != nil {
			t.Fatalf("aws cloudwatch %s: %s", strings.Join(args, " "), errs)
		}
		answer := object{}
		must(t, json.Unmarshal([]byte(out), &answer))
		return answer
	}
	began := time.Now()
	dimension := "Name=FleetId,Value=" + p.fleet
	waittest.Until(t, "the metrics of the fleet and of its location to be listed", func() bool {
		s.advance(time.Minute) // each round lets a minute end
		return ask("list-metrics", "--namespace", "AWS/GameLift", "--metric-name", "ActiveServerProcesses", "--dimensions", dimension).count("Metrics") == 2
	})
	from, to := began.Add(-time.Hour).UTC().Format(time.RFC3339), began.Add(24*time.Hour).UTC().Format(time.RFC3339)
	old := ask("get-metric-statistics", "--namespace", "AWS/GameLift", "--metric-name", "ActiveServerProcesses", "--dimensions", dimension,
		"--start-time", from, "--end-time", to, "--period", "86400", "--statistics", "Maximum")
	if got := old.at("Datapoints", "Maximum"); got != 1.0 {
		t.Errorf("the most active server processes: %v in %v", got, old)
	}
	data := ask("get-metric-data", "--start-time", from, "--end-time", to, "--metric-data-queries",
		`[{"Id":"a","MetricStat":{"Metric":{"Namespace":"AWS/GameLift","MetricName":"ActiveServerProcesses","Dimensions":[{"Name":"FleetId","Value":"`+p.fleet+`"}]},"Period":60,"Stat":"Average"}}]`)
	if data.text("MetricDataResults", "StatusCode") != "Complete" || data.count("MetricDataResults", "Values") == 0 {
		t.Errorf("the metric's data: %v", data)
	}
}
