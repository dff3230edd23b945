// Package rehearsal tries rule sets inside of a running service, with the engine of muster simulate: on an invented population, on arrivals that a person pastes, and on the
// tickets of the last hour. What a trial takes is bounded in tickets, values, time and its share of one processor, and a node has one under way at a time.
package rehearsal
