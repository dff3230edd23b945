package gamelift

// Service is the API's operations. Each is a method with the signature of the SDK client's method, less the options.
type Service struct{}
