// Package ruleset implements the language in which designers define a good match: FlexMatch rule sets, JSON with players' attributes,
// teams, rules over property expressions, and expansions that relax them with time.
//
// Parse compiles a rule set, or reports all problems, each with its path. In a compiled rule set attributes are columns, expressions are
// chains of functions over them, and every wait time of an expansion has a Level, which is the rule set from then on. A Level judges
// candidates and is the reference. A fast matcher recognises the rules' shapes and keeps its own counts, but its verdicts must agree with
// the reference.
//
// # How a candidate is judged
//
// An expression is a chain: one read of the candidate inside functions. It is evaluated from the read outwards over flat arrays with the
// lengths of their lists (nested), so its cost is the number of values that it reads times the number of its functions, at most 16
// (callsMax). A rule pairs each measurement's values with the reference's, and every pair must hold.
//
// A verdict is Holds, Fails or Undefined, for a value that does not exist, such as the average of an empty team. Only Holds makes a
// candidate legal. Compound rules use Kleene's three-valued logic: an undefined part matters only if the others do not decide without it,
// and its negation is undefined. Otherwise "not (average is high)" would accept teams that have no average.
//
// Evaluation gives the same result on every machine. Sums are added in the order of the candidate's players, no product is fused with a
// sum, and results of avg, median, sum and stddev are equal if they differ by less than 1e-9 of the larger one or of 1. An evaluator that
// adds in another order must call this one for values near a bound.
//
// A rule set has a Level for each wait time of its expansions. Levels share the rules that a step does not change; the length of the body
// (bodyMax) and the number of all changes (changesMax) bound them.
//
// Source: docs/spec/flexmatch.md#rule-set. For what AWS does not document see B090 to B106.
package ruleset
