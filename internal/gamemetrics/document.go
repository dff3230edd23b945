package gamemetrics

import (
	"fmt"
	"strings"
)

// Document returns docs/metrics.md.
func Document() string {
	var b strings.Builder
	b.WriteString(`# Metrics of the service

This page lists the metrics of the GameLift API, under the names that dashboards use, and what Muster counts for each. ` + "`go test ./internal/gamemetrics -run Document -update`" + ` writes this page from the
table in the code. The [guide](guide/metrics.md) explains how to read them; Muster's own metrics, which begin with ` + "`muster_`" + `, are in [operations](guide/operations.md#metrics).

A *gauge* is the state at the end of a minute. A *counter* is how often something happened within the minute; in Prometheus it begins at 0 once its fleet, queue, location or matchmaking configuration exists. A *duration* has one sample for each event that ended within it. A percentage of zero has no value. Utilization is known only for hosts with ` + "`muster agent`" + ` on Linux; a fleet without an agent has no such series.

| metric | unit | kind | dimensions | in Prometheus | what |
| --- | --- | --- | --- | --- | --- |
`)
	for _, d := range Table {
		var sets []string
		for _, set := range d.DimensionSets() {
			sets = append(sets, "`"+strings.Join(set, "`+`")+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | `%s` {`%s`} | %s |\n", d.Name, d.Unit, d.Kind, strings.Join(sets, ", "), d.Prometheus(), strings.Join(d.Labels(), "`, `"), d.Meaning)
	}
	b.WriteString(`
## Metrics that do not apply

Muster does not have these metrics of the cloud service: what they count does not exist on your own hardware, or no program can measure it.

- Spot instances and replaced instances: ` + "`RecycledInstances`, `InstanceInterruptions`, `GameSessionInterruptions`, `GameServerInterruptions`, `UnhealthyInstancesReplaced`, `DrainingAvailableGameServers`, `DrainingUtilizedGameServers`" + `.
- Container groups and the player gateway.
`)
	return b.String()
}
