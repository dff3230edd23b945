// Package matcher finds matches: from a pool of tickets, a rule set and the time it makes proposals.
//
// Its results depend only on the tickets and their order, the times of the passes, and the configuration's name, so that a test, a
// simulation and the service get the same matches from the same tickets. It uses no clock and no journal: its caller submits the
// proposals as commands and adds the tickets of a refused proposal again.
//
// ruleset.Level decides what is legal. The matcher is fast because it rarely calls it and uses checks that agree with it; DESIGN.md
// explains them.
package matcher
