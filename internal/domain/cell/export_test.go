package cell

// CheckState counts everything again and holds counts, indexes and deadlines against it.
var CheckState = checkState
