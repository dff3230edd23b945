// Package simulate tries rule sets on recorded arrivals or on an invented population. Time is virtual and runs as fast as the processor
// allows. It uses the service's matcher, with the service's passes. It omits what follows a match: acceptance and placement.
//
// The same rule set, arrivals and seed give the same report on every machine.
package simulate
