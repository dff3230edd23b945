module github.com/musterhq/muster/gameclient

go 1.26.0

require (
	github.com/aws/aws-sdk-go-v2 v1.47.7
	github.com/aws/aws-sdk-go-v2/service/gamelift v1.55.0
	github.com/aws/smithy-go v1.28.8
	github.com/fxamacker/cbor/v2 v2.10.0
	github.com/gorilla/websocket v1.5.3
)

require (
	github.com/aws/aws-sdk-go-v2/internal/configsources v1.5.9 // indirect
	github.com/aws/aws-sdk-go-v2/internal/endpoints/v2 v2.8.9 // indirect
	github.com/x448/float16 v0.8.4 // indirect
)
