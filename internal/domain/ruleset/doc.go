// Package ruleset is the language in which designers say what a good match is: FlexMatch rule sets, JSON with players'
// attributes, teams, rules over property expressions, and expansions that relax them with time.
//
// Parse reads a rule set, or reports all that is wrong with it, each problem with the path of its place. What it gives
// is compiled: attributes are columns, expressions are chains of functions over them, and every wait of an expansion has its Level,
// the rule set as it stands from then on. A Level judges candidates; it is the reference that says what is right. A
// matcher that wants to be fast recognises the rules' shapes and keeps its own counts, and must agree with it.
//
// # How a candidate is judged
//
// An expression is a chain: one read of the candidate inside functions. It is evaluated from the read outwards over flat arrays with
// the lengths of their lists (nested), so its cost is the values that it reads times its functions, of which there are 16 at most
// (callsMax). A rule pairs each measurement's values with the reference's, and every pair has to hold.
//
// A verdict is Holds, Fails or Undefined, for a value that does not exist, such as the average of an empty team. Only Holds makes a
// candidate legal. Compound rules are Kleene's three-valued logic: a part that is undefined matters only where the others do not
// decide without it, and a not leaves it undefined. Otherwise "not (average is high)" would accept teams that have no average.
//
// Evaluation gives the same on every machine. Sums are added in the order of the candidate's players, no
// product is fused with a sum, and numbers that come out of avg, median, sum or stddev are equal when they differ by less than 1e-9 of the
// larger one or of 1. Evaluators that add in another order must leave what lies near a bound to this one.
//
// A rule set has a Level for each wait of its expansions. Levels share the rules that a step does not change; the length
// of the body (bodyMax) and the number of all changes (changesMax) bound them.
//
// Source: docs/spec/flexmatch.md#rule-set. Where AWS is silent see B090 to B106.
package ruleset
