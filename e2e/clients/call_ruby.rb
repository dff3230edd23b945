# Calls the service with the AWS SDK for Ruby: a line of the standard input is a call, a line of the output its answer; clients_test.go says what is in them.
# Debian has the core of the SDK, which signs, writes, reads, and makes errors. The client of a service is generated code; here it is made from the API's model.

require 'json'
require 'aws-sdk-core'
require 'aws-sdk-core/plugins/protocols/json_rpc'
require 'aws-sdk-core/plugins/signature_v4'

include Seahorse::Model

model = JSON.parse(File.read(ENV.fetch('MODEL')))

def name_in_ruby(name) = name.gsub(/([A-Z0-9]+)([A-Z][a-z])/, '\1_\2').gsub(/([a-z0-9])([A-Z])/, '\1_\2').downcase.to_sym

classes = {
  'structure' => :StructureShape, 'list' => :ListShape, 'map' => :MapShape, 'string' => :StringShape, 'integer' => :IntegerShape,
  'long' => :IntegerShape, 'double' => :FloatShape, 'float' => :FloatShape, 'boolean' => :BooleanShape, 'timestamp' => :TimestampShape, 'blob' => :BlobShape
}
shapes = model['shapes'].to_h { |name, shape| [name, Shapes.const_get(classes.fetch(shape['type'])).new(name: name)] }
reference = ->(name, location = nil) { Shapes::ShapeRef.new(**{ shape: shapes.fetch(name), location_name: location }.compact) }
model['shapes'].each do |name, shape|
  made = shapes[name]
  case shape['type']
  when 'structure'
    members = shape['members'] || {}
    members.each { |member, type| made.add_member(name_in_ruby(member), reference.(type, member)) }
    made.struct_class = members.empty? ? Aws::EmptyStructure : Struct.new(*members.keys.map { |member| name_in_ruby(member) }) { include Aws::Structure }
  when 'list' then made.member = reference.(shape['member'])
  when 'map'
    made.key = reference.(shape['key'])
    made.value = reference.(shape['value'])
  end
end
nothing = Shapes::ShapeRef.new(shape: Shapes::StructureShape.new.tap { |shape| shape.struct_class = Aws::EmptyStructure })

api = Api.new
api.version = '2015-10-01'
api.metadata = {
  'apiVersion' => '2015-10-01', 'endpointPrefix' => 'gamelift', 'jsonVersion' => '1.1', 'protocol' => 'json', 'serviceId' => 'GameLift',
  'signatureVersion' => 'v4', 'targetPrefix' => 'GameLift'
}
model['operations'].each do |name, operation|
  api.add_operation(name_in_ruby(name), Operation.new.tap do |o|
    o.name, o.http_method, o.http_request_uri = name, 'POST', '/'
    o.input = operation['input'] ? reference.(operation['input']) : nothing
    o.output = operation['output'] ? reference.(operation['output']) : nothing
    operation['errors'].each { |error| o.errors << reference.(error) }
  end)
end

module GameLift
  module Errors
    extend Aws::Errors::DynamicErrors
  end
end
GameLift::Client = Class.new(Seahorse::Client::Base) do
  include Aws::ClientStubs
  @identifier = :gamelift
  set_api(api)
  [
    Seahorse::Client::Plugins::ContentLength, Aws::Plugins::CredentialsConfiguration, Aws::Plugins::Logging, Aws::Plugins::ParamConverter,
    Aws::Plugins::ParamValidator, Aws::Plugins::UserAgent, Aws::Plugins::HelpfulSocketErrors, Aws::Plugins::RetryErrors,
    Aws::Plugins::GlobalConfiguration, Aws::Plugins::RegionalEndpoint, Aws::Plugins::ResponsePaging, Aws::Plugins::StubResponses,
    Aws::Plugins::IdempotencyToken, Aws::Plugins::JsonvalueConverter, Aws::Plugins::TransferEncoding, Aws::Plugins::HttpChecksum,
    Aws::Plugins::RecursionDetection, Aws::Plugins::SignatureV4, Aws::Plugins::Protocols::JsonRpc
  ].each { |plugin| add_plugin(plugin) }
  class << self
    attr_reader :identifier

    def errors_module = GameLift::Errors
  end
end

# to_ruby and from_ruby give the members of an input and an answer their other names.
def to_ruby(value, shape)
  case shape
  when Shapes::StructureShape then value.to_h { |name, member| [name_in_ruby(name), to_ruby(member, shape.member(name_in_ruby(name)).shape)] }
  when Shapes::MapShape then value.transform_values { |member| to_ruby(member, shape.value.shape) }
  when Shapes::ListShape then value.map { |member| to_ruby(member, shape.member.shape) }
  else value
  end
end

def from_ruby(value, shape)
  case shape
  when Shapes::StructureShape
    shape.members.reject { |name, _| value[name].nil? }.to_h { |name, member| [member.location_name, from_ruby(value[name], member.shape)] }
  when Shapes::MapShape then value.transform_values { |member| from_ruby(member, shape.value.shape) }
  when Shapes::ListShape then value.map { |member| from_ruby(member, shape.member.shape) }
  when Shapes::TimestampShape then value.to_f
  else value
  end
end

# The service judges the input, not the client.
client = GameLift::Client.new(endpoint: ENV.fetch('AWS_ENDPOINT_URL'), region: ENV.fetch('AWS_DEFAULT_REGION'), retry_limit: 0, validate_params: false)
$stdout.sync = true
while (line = gets)
  call = JSON.parse(line)
  name = name_in_ruby(call['Operation'])
  operation = api.operation(name)
  begin
    answer = client.public_send(name, to_ruby(call['Input'], operation.input.shape))
    puts JSON.generate('Answer' => from_ruby(answer.data, operation.output.shape))
  rescue Aws::Errors::ServiceError => error
    puts JSON.generate('Code' => error.class.name.split('::').last, 'Message' => error.message)
  end
end
