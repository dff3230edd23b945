package playerapi

// OperatorsConfig is what the calls of operators need.
type OperatorsConfig struct {
	State   *State
	Streams *Streams
}

type operatorsDoor struct {
	OperatorsConfig
	realm *Realm
}

// declareOperators declares the calls of operators.
func declareOperators(r *Realm, c OperatorsConfig) {
	d := &operatorsDoor{c, r}
	d.declareOperator()
	d.declareConfig()
	d.declareDrain()
}
