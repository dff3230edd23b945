// Package matcher is for finding matches: a pool of tickets, a rule set and the time go in, proposals come out.
//
// It is a pure function of what was added, in which order, of the times of the passes, and of the configuration's name,
// so that a test, a simulation and the service get the same matches from the same tickets. It knows no clock and no
// journal: whoever runs it submits the proposals as commands, and gives the tickets of a refused one back.
//
// What is legal is decided by ruleset.Level. The matcher agrees with it and is fast because it asks it seldom: DESIGN.md
// says how.
package matcher
