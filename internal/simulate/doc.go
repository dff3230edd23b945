// Package simulate tries rule sets on players who are not there: recorded arrivals, or a population that it makes up.
// Time is virtual and runs as fast as the processor allows. Matches are made by the very matcher that the service runs,
// in passes like the service's; what a service adds after a match (acceptance, placement) is left out.
//
// The same rule set, arrivals and seed give the same report, on every machine.
package simulate
