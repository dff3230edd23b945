package gamemetrics

import (
	"fmt"
	"strings"
)

// Document returns docs/metrics.md.
func Document() string {
	var b strings.Builder
	b.WriteString(`# Metrics of the service

The metrics of the GameLift API, with the names that dashboards know, and what Muster counts for each. ` + "`go test ./internal/gamemetrics -run Document -update`" + ` writes this page from the
table in the code. The [guide](guide/metrics.md) says how to read them; metrics of Muster itself, which begin with ` + "`muster_`" + `, are in [operations](guide/operations.md#metrics).

A *gauge* is the state at the end of a minute, a *counter* how often something happened within it, a *duration* has one sample for each thing that ended within it. A share of nothing has no value. What hosts use is known of those with ` + "`muster agent`" + `, on Linux; a fleet without one has no such series.

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
## Without a meaning here

These metrics of the cloud service are not kept: what they count does not exist on one's own hardware, or no program can measure it.

- Spot instances and replaced instances: ` + "`RecycledInstances`, `InstanceInterruptions`, `GameSessionInterruptions`, `GameServerInterruptions`, `UnhealthyInstancesReplaced`, `DrainingAvailableGameServers`, `DrainingUtilizedGameServers`" + `.
- Container groups and the player gateway.
`)
	return b.String()
}
