package cell

// CheckState counts everything again and compares counts, indexes and deadlines with the result.
var CheckState = checkState
