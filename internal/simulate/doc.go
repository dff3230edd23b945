// Package simulate tries rule sets on recorded arrivals, or on an invented population. Time is virtual and runs as fast as the processor
// allows. The matcher is that of the service, and makes passes as the service does. What follows a match (acceptance, placement) is left out.
//
// The same rule set, arrivals and seed give the same report, on every machine.
package simulate
