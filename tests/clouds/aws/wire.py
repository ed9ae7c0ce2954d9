#!/usr/bin/env python3
"""Checks a journal of the rig's AWS account (--wire) with botocore: its models, its serializer, its parser, its signer.

    wire.py [--testing] JOURNAL [ACTION...]

Each request is read back by the service's model (every parameter known, of its type, within its bounds, none missing), written
again by botocore and compared with what was sent, and its signature made again. Each answer is parsed, and none of its members
may be unknown to the model. With actions, each of them has to be there. With --testing the client was one that tries what is
wrong: what the model forbids has to be refused, instead of never sent. Exit code 1: something is wrong.
"""

import hashlib
import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import botocore.loaders
import botocore.model
import botocore.parsers
import botocore.serialize
import botocore.validate

LOADER = botocore.loaders.Loader()
SERVICES = {name: botocore.model.ServiceModel(LOADER.load_service_model(name, "service-2"), name)
            for name in ("eks", "autoscaling", "sts", "ec2")}
# What every service may answer, beside the errors that its model lists for the operation.
COMMON = {
    "AccessDenied", "AccessDeniedException", "ExpiredToken", "ExpiredTokenException", "IncompleteSignature", "InvalidAction",
    "InvalidClientTokenId", "InvalidSignatureException", "MalformedInput", "MissingAuthenticationToken",
    "MissingAuthenticationTokenException", "ServiceUnavailable", "ServiceUnavailableException", "SignatureDoesNotMatch",
    "Throttling", "TooManyRequestsException", "UnrecognizedClientException", "ValidationError", "ResourceContention",
    "ServerException", "ResourceInUseException",
}


FORMS = ("query", "ec2")  # protocols that ask by forms and answer in XML


class Wrong(Exception):
    pass


def find_operation(exchange):
    """The operation's model, and the parts of the path."""
    url = urllib.parse.urlsplit(exchange["url"])
    if url.path == "/":
        form = dict(urllib.parse.parse_qsl(exchange["body"], keep_blank_values=True, strict_parsing=True))
        for service in (SERVICES["autoscaling"], SERVICES["sts"], SERVICES["ec2"]):
            if form.get("Action") in service.operation_names:
                if form.get("Version") != service.api_version:
                    raise Wrong(f"Version is {form.get('Version')}, {service.api_version} is right")
                return service.operation_model(form["Action"]), form
        raise Wrong(f"no service has an action {form.get('Action')!r}")
    service = SERVICES["eks"]
    parts = url.path.split("/")
    for name in service.operation_names:
        operation = service.operation_model(name)
        pattern = operation.http["requestUri"].split("?")[0].split("/")
        if operation.http["method"] == exchange["method"] and len(pattern) == len(parts) and all(
                p.startswith("{") or p == part for p, part in zip(pattern, parts)):
            return operation, {p.strip("{}"): urllib.parse.unquote(part) for p, part in zip(pattern, parts) if p.startswith("{")}
    raise Wrong(f"no operation of EKS is {exchange['method']} {url.path}")


def typed(shape, text, where):
    """A text of a form, a path or a query as the type that the model wants."""
    try:
        if shape.type_name in ("integer", "long"):
            return int(text)
        if shape.type_name == "boolean":
            return {"true": True, "false": False}[text]
    except (KeyError, ValueError):
        raise Wrong(f"{where}: {text!r} is no {shape.type_name}") from None
    if shape.type_name != "string":
        raise Wrong(f"{where}: a text stands for {shape.type_name}")
    return text


def form_name(name, member, protocol):
    told = member.serialization.get("name", name)
    return member.serialization.get("queryName", told[0].upper() + told[1:]) if protocol == "ec2" else told


def from_form(shape, form, prefix, protocol):
    """Takes a shape's members out of a form, as the query protocols write them: EC2's has no lists but flat ones."""
    if shape.type_name == "structure":
        result = {}
        for name, member in shape.members.items():
            told = form_name(name, member, protocol)
            at = f"{prefix}.{told}" if prefix else told
            if any(key == at or key.startswith(at + ".") for key in form):
                result[name] = from_form(member, form, at, protocol)
        return result
    if shape.type_name == "list":
        result = []
        is_flat = protocol == "ec2" or shape.serialization.get("flattened")
        infix = "" if is_flat else "." + shape.member.serialization.get("name", "member")
        while any(key == f"{prefix}{infix}.{len(result) + 1}" or key.startswith(f"{prefix}{infix}.{len(result) + 1}.")
                  for key in form):
            result.append(from_form(shape.member, form, f"{prefix}{infix}.{len(result) + 1}", protocol))
        return result
    return typed(shape, form.pop(prefix), prefix)


def parameters(operation, exchange, found):
    """What was asked, in the model's names. Anything that is not in the model is wrong."""
    shape = operation.input_shape
    protocol = operation.service_model.metadata["protocol"]
    if protocol in FORMS:
        form = {key: value for key, value in found.items() if key not in ("Action", "Version")}
        result = from_form(shape, form, "", protocol) if shape else {}
        if form:
            raise Wrong(f"{operation.name} has no parameter {sorted(form)[0]}")
        return result
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(exchange["url"]).query, keep_blank_values=True))
    body = json.loads(exchange["body"]) if exchange["body"] else {}
    result = {}
    for name, member in shape.members.items():
        location, key = member.serialization.get("location"), member.serialization.get("name", name)
        source = {"uri": found, "querystring": query}.get(location, body)
        if key in source:
            value = source.pop(key)
            result[name] = typed(member, value, name) if location else value
    for rest in (query, body):
        if rest:
            raise Wrong(f"{operation.name} has no parameter {sorted(rest)[0]}")
    return result


def check_enums(shape, value, where):
    """botocore itself does not look at the values of enumerations, nor at the most that is allowed."""
    if shape.type_name == "structure":
        for name, member in value.items():
            check_enums(shape.members[name], member, f"{where}.{name}")
    elif shape.type_name == "list":
        for member in value:
            check_enums(shape.member, member, where)
        if len(value) > shape.metadata.get("max", len(value)):
            raise Wrong(f"{where}: {len(value)} are more than {shape.metadata['max']}")
    elif getattr(shape, "enum", None) and value not in shape.enum:
        raise Wrong(f"{where}: {value!r} is none of {', '.join(shape.enum)}")
    elif shape.type_name == "integer" and not shape.metadata.get("min", value) <= value <= shape.metadata.get("max", value):
        raise Wrong(f"{where}: {value} is out of bounds")


def check_again(operation, exchange, values):
    """botocore writes the same request."""
    metadata = operation.service_model.metadata
    again = botocore.serialize.create_serializer(metadata["protocol"]).serialize_to_request(values, operation)
    url = urllib.parse.urlsplit(exchange["url"])
    sent_query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
    again_query = {key: str(value) for key, value in (again["query_string"] or {}).items()}
    if (exchange["method"], url.path, sent_query) != (again["method"], again["url_path"].split("?")[0], again_query):
        raise Wrong(f"{exchange['method']} {exchange['url']} is not {again['method']} {again['url_path']} {again_query}")
    kind = exchange["headers"].get("content-type", "")
    if metadata["protocol"] in FORMS:
        sent, wanted = dict(urllib.parse.parse_qsl(exchange["body"], keep_blank_values=True)), {}
        for key, value in again["body"].items():
            wanted[key] = str(value).lower() if isinstance(value, bool) else str(value)
        if not kind.startswith("application/x-www-form-urlencoded"):
            raise Wrong(f"Content-Type is {kind!r}")
    else:
        sent = json.loads(exchange["body"]) if exchange["body"] else {}
        wanted = json.loads(again["body"]) if again["body"] else {}
        if exchange["body"] and not kind.startswith("application/json"):
            raise Wrong(f"Content-Type is {kind!r}")
        for made in ("clientRequestToken",):  # botocore makes one up where none was sent
            if made not in sent:
                wanted.pop(made, None)
    if sent != wanted:
        raise Wrong(f"the body is {sent}, botocore's {wanted}")


def check_signature(operation, exchange):
    """botocore signs the same request in the same way."""
    header = exchange["headers"].get("authorization", "")
    if operation.auth_type in ("none", "smithy.api#noAuth") or operation.name == "AssumeRoleWithWebIdentity":
        if header:
            raise Wrong(f"{operation.name} is to be sent unsigned")
        return
    if "secret" not in exchange and (exchange["status"] >= 400 or exchange["status"] == 0):
        return  # refused before, or because of, the signature
    scheme, _, rest = header.partition(" ")
    fields = dict(part.strip().split("=", 1) for part in rest.split(","))
    if scheme != "AWS4-HMAC-SHA256":
        raise Wrong(f"Authorization is {scheme!r}")
    key, _, region, service, _ = fields["Credential"].split("/")
    if service != operation.service_model.signing_name:
        raise Wrong(f"signed for {service}, not for {operation.service_model.signing_name}")
    names = fields["SignedHeaders"].split(";")
    for needed in ["host", "x-amz-date"] + [n for n in ("x-amz-security-token",) if n in exchange["headers"]]:
        if needed not in names:
            raise Wrong(f"{needed} is not signed")
    digest = hashlib.sha256(exchange["body"].encode()).hexdigest()
    if exchange["headers"].get("x-amz-content-sha256", digest) != digest:
        raise Wrong("x-amz-content-sha256 is not the body's")
    request = botocore.awsrequest.AWSRequest(method=exchange["method"], data=exchange["body"].encode(),
                                             url=f"https://{exchange['headers']['host']}{exchange['url']}",
                                             headers={n: exchange["headers"][n] for n in names})
    request.context["timestamp"] = exchange["headers"]["x-amz-date"]
    auth = botocore.auth.SigV4Auth(botocore.credentials.Credentials(key, exchange["secret"]), service, region)
    auth.headers_to_sign = lambda r: signed_headers(r, names)
    made = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    if made != fields["Signature"]:
        raise Wrong("the signature is not botocore's")


def signed_headers(request, names):
    headers = botocore.auth.HTTPHeaders()
    for name in names:
        headers[name] = request.headers[name]
    return headers


def check_members(shape, value, where):
    """Every member of an answer is one that the model has."""
    if shape.type_name == "structure":
        if not isinstance(value, dict):
            raise Wrong(f"answer: {where} is {value!r}")
        for name, member in value.items():
            known = {m.serialization.get("name", n): m for n, m in shape.members.items()}
            if name not in known:
                raise Wrong(f"answer: {where} has no member {name}")
            if member is not None:
                check_members(known[name], member, f"{where}.{name}")
        for name in shape.required_members:
            if shape.members[name].serialization.get("name", name) not in value:
                raise Wrong(f"answer: {where} lacks {name}")
    elif shape.type_name == "list":
        for member in value:
            check_members(shape.member, member, where)
    elif shape.type_name in ("integer", "long") and not str(value).lstrip("-").isdigit():
        raise Wrong(f"answer: {where} is {value!r}")
    elif shape.type_name == "boolean" and str(value).lower() not in ("true", "false"):
        raise Wrong(f"answer: {where} is {value!r}")


def from_xml(shape, element):
    """An XML element as JSON would have it, by the model, so that unknown names stay visible."""
    children = list(element)
    if shape is not None and shape.type_name == "list":
        return [from_xml(shape.member, child) for child in children]
    if shape is not None and shape.type_name == "structure":
        known = {m.serialization.get("name", n): m for n, m in shape.members.items()}
        return {local(child): from_xml(known.get(local(child)), child) for child in children}
    return element.text or ""


def local(element):
    return element.tag.split("}")[-1]


def check_answer(operation, exchange):
    if exchange["status"] == 0:
        return
    protocol = operation.service_model.metadata["protocol"]
    parser = botocore.parsers.create_parser(protocol)
    headers = {key.title(): value for key, value in exchange["response_headers"].items()}
    headers.update({key: value for key, value in exchange["response_headers"].items()})
    parsed = parser.parse({"status_code": exchange["status"], "headers": headers, "body": exchange["response"].encode()},
                          operation.output_shape)
    if exchange["status"] >= 300:
        code = parsed["Error"]["Code"]
        listed = {shape.metadata.get("error", {}).get("code", shape.name) for shape in operation.error_shapes}
        if code not in listed | COMMON or not parsed["Error"]["Message"]:
            raise Wrong(f"answer: error {code!r} is none of {operation.name}")
        return
    if protocol in FORMS:
        root = ElementTree.fromstring(exchange["response"])
        if local(root) != operation.name + "Response":
            raise Wrong(f"answer: {local(root)}")
        if protocol == "ec2":
            root.remove(next(child for child in root if local(child) == "requestId"))
            check_members(operation.output_shape, from_xml(operation.output_shape, root), operation.name)
            return
        result = [child for child in root if local(child) == operation.name + "Result"]
        if not result:
            if operation.output_shape is not None:
                raise Wrong("answer: there is no result")
            return
        check_members(operation.output_shape, from_xml(operation.output_shape, result[0]), operation.name)
    else:
        check_members(operation.output_shape, json.loads(exchange["response"]), operation.name)


def check_request(operation, exchange, found):
    values = parameters(operation, exchange, found)
    if operation.input_shape is None:
        return
    report = botocore.validate.ParamValidator().validate(values, operation.input_shape)
    if report.has_errors():
        raise Wrong(report.generate_report())
    check_enums(operation.input_shape, values, operation.name)
    check_again(operation, exchange, values)


def check(exchange, testing):
    operation, found = find_operation(exchange)
    try:
        check_request(operation, exchange, found)
    except Wrong as e:
        if not testing:
            raise
        if exchange["status"] != 400:
            raise Wrong(f"{e}; and yet the answer is {exchange['status']}") from None
    check_signature(operation, exchange)
    check_answer(operation, exchange)
    return operation.name


def main(*arguments):
    testing = arguments[0] == "--testing"
    path, *wanted = arguments[1:] if testing else arguments
    counts, wrong = {}, 0
    with open(path, encoding="utf-8") as journal:
        for number, line in enumerate(journal, 1):
            exchange = json.loads(line)
            if exchange["cloud"] != "aws":
                continue
            try:
                name = check(exchange, testing)
                counts[name] = counts.get(name, 0) + 1
            except Wrong as e:
                wrong += 1
                print(f"FAILED: {path}:{number}: {exchange['method']} {exchange['url']} {exchange['body'][:200]}: {e}")
    for name in wanted:
        if name not in counts:
            wrong += 1
            print(f"FAILED: nobody asked {name}")
    print(f"{sum(counts.values())} exchanges are as the models have them: " +
          ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    return 1 if wrong or not counts else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
