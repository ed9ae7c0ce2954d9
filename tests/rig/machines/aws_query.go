package main

import (
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const requestID = "7a62c49f-347e-4fc4-9331-6e8eEXAMPLE"

// queryActions are the actions of the services that take forms and answer in XML. A result of nil: there is none.
var queryActions map[string]func(d *awsDoor, c *awsCall) (result any, refusal *awsError)

func init() {
	queryActions = map[string]func(*awsDoor, *awsCall) (any, *awsError){
		"AssumeRoleWithWebIdentity": assumeRole, "GetCallerIdentity": callerIdentity,
		"DescribeAutoScalingGroups": describeGroups, "DescribeAutoScalingInstances": describeInstances,
		"DescribeScalingActivities": describeActivities, "DescribeTags": describeTags, "DescribeWarmPool": describeWarm,
		"DescribeLifecycleHooks": describeHooks, "DescribeInstanceRefreshes": describeRefreshes,
		"DescribeLaunchConfigurations": describeLaunchConfigurations,
		"SetDesiredCapacity":           setDesired, "TerminateInstanceInAutoScalingGroup": terminateInstance,
		"SetInstanceProtection": setProtection, "SetInstanceHealth": setHealth, "UpdateAutoScalingGroup": updateGroup,
		"SuspendProcesses": suspend, "ResumeProcesses": resume, "DetachInstances": detach,
		"CompleteLifecycleAction": completeHook, "RecordLifecycleActionHeartbeat": heartbeatHook,
		"PutWarmPool": putWarm, "DeleteWarmPool": deleteWarm, "LaunchInstances": launchInstances,
		"DescribeLaunchTemplateVersions": describeTemplateVersions, "DescribeCapacityReservations": describeReservations,
	}
}

// answer does what is asked and writes it as the service does.
func (c *awsCall) answer(d *awsDoor, w http.ResponseWriter) *awsError {
	if c.service == "eks" {
		value, refusal := eksActions[c.action](d, c)
		if refusal == nil {
			w.Header().Set("X-Amzn-Requestid", requestID)
			answerJSON(w, 200, value)
		}
		return refusal
	}
	result, refusal := queryActions[c.action](d, c)
	if refusal != nil {
		return refusal
	}
	if c.service == "ec2" {
		answerEC2(w, c.action, result.(ec2Set))
		return nil
	}
	namespace := "http://autoscaling.amazonaws.com/doc/2011-01-01/"
	if c.service == "sts" {
		namespace = "https://sts.amazonaws.com/doc/2011-06-15/"
	}
	w.Header().Set("Content-Type", "text/xml")
	w.Header().Set("X-Amzn-Requestid", requestID)
	encoder := xml.NewEncoder(w)
	outer := xml.StartElement{Name: xml.Name{Local: c.action + "Response"},
		Attr: []xml.Attr{{Name: xml.Name{Local: "xmlns"}, Value: namespace}}}
	encoder.EncodeToken(outer)
	if result != nil {
		encoder.EncodeElement(result, xml.StartElement{Name: xml.Name{Local: c.action + "Result"}})
	}
	encoder.EncodeElement(struct{ RequestId string }{requestID}, xml.StartElement{Name: xml.Name{Local: "ResponseMetadata"}})
	encoder.EncodeToken(outer.End())
	encoder.Flush()
	return nil
}

// eksNames are what EKS calls the errors that all services have.
var eksNames = map[string]awsError{
	"MissingAuthenticationToken": {403, "MissingAuthenticationTokenException", ""},
	"IncompleteSignature":        {403, "IncompleteSignatureException", ""},
	"SignatureDoesNotMatch":      {403, "InvalidSignatureException", ""},
	"InvalidClientTokenId":       {403, "UnrecognizedClientException", ""},
	"ExpiredToken":               {403, "ExpiredTokenException", ""},
	"AccessDenied":               {403, "AccessDeniedException", ""},
	"Throttling":                 {429, "TooManyRequestsException", ""},
	"ServiceUnavailable":         {503, "ServiceUnavailableException", ""},
	"ResourceContention":         {500, "ServerException", ""},
	"InvalidAction":              {404, "UnknownOperationException", ""},
}

func (c *awsCall) refuse(w http.ResponseWriter, e *awsError) {
	if c.service == "eks" {
		if own, ok := eksNames[e.code]; ok {
			e.status, e.code = own.status, own.code
		}
		w.Header().Set("X-Amzn-Errortype", e.code+":http://internal.amazon.com/coral/com.amazonaws.eks/")
		answerJSON(w, e.status, map[string]string{"message": e.message})
		return
	}
	if c.service == "ec2" {
		refuseEC2(w, e)
		return
	}
	kind := "Sender"
	if e.status >= 500 && e.code != "ResourceContention" {
		kind = "Receiver"
	}
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(e.status)
	text, err := xml.Marshal(struct {
		XMLName   xml.Name `xml:"ErrorResponse"`
		Type      string   `xml:"Error>Type"`
		Code      string   `xml:"Error>Code"`
		Message   string   `xml:"Error>Message"`
		RequestID string   `xml:"RequestId"`
	}{Type: kind, Code: e.code, Message: e.message, RequestID: requestID})
	if err != nil {
		panic(err)
	}
	w.Write(text)
}

func bad(format string, arguments ...any) *awsError {
	return &awsError{400, "ValidationError", fmt.Sprintf(format, arguments...)}
}

// members is a list of the form: NAME.member.1, NAME.member.2, ...
func members(form url.Values, name string) (list []string) {
	for i := 1; form.Has(fmt.Sprintf("%s.member.%d", name, i)); i++ {
		list = append(list, form.Get(fmt.Sprintf("%s.member.%d", name, i)))
	}
	return list
}

func missing(name string) *awsError {
	return bad("1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null",
		strings.ToLower(name[:1])+name[1:])
}

// number reads a form's field between least and most; ok is false where it is absent.
func (c *awsCall) number(name string, least, most int) (value int, ok bool, refusal *awsError) {
	if !c.form.Has(name) {
		return 0, false, nil
	}
	value, err := strconv.Atoi(c.form.Get(name))
	if err != nil {
		return 0, false, &awsError{400, "MalformedInput", fmt.Sprintf("%q is no number", c.form.Get(name))}
	}
	if value < least || value > most {
		word, limit := "greater", least
		if value > most {
			word, limit = "less", most
		}
		return 0, false, bad("1 validation error detected: Value '%d' at '%s' failed to satisfy constraint: Member must have "+
			"value %s than or equal to %d", value, strings.ToLower(name[:1])+name[1:], word, limit)
	}
	return value, true, nil
}

func (c *awsCall) flag(name string) (value, ok bool, refusal *awsError) {
	switch strings.ToLower(c.form.Get(name)) {
	case "":
		return false, false, nil
	case "true":
		return true, true, nil
	case "false":
		return false, true, nil
	}
	return false, false, &awsError{400, "MalformedInput", fmt.Sprintf("%s is true or false, found %q", name, c.form.Get(name))}
}

// needGroup is the group that AutoScalingGroupName names.
func (c *awsCall) needGroup(d *awsDoor) (*group, *awsError) {
	name := c.form.Get("AutoScalingGroupName")
	if name == "" {
		return nil, missing("AutoScalingGroupName")
	}
	g := d.cloud.byASG(name)
	if g == nil {
		return nil, bad("AutoScalingGroup name not found - AutoScalingGroup: %s not found", name)
	}
	return g, nil
}

// filters are those of a Describe: name and allowed values.
func (c *awsCall) filters() (list map[string][]string) {
	list = map[string][]string{}
	for i := 1; c.form.Has(fmt.Sprintf("Filters.member.%d.Name", i)); i++ {
		at := fmt.Sprintf("Filters.member.%d.", i)
		list[c.form.Get(at+"Name")] = members(c.form, at+"Values")
	}
	return list
}

// page cuts a list; the token says where it goes on, and for which question.
func page[T any](c *awsCall, list []T, size int, token string) (part []T, next string, refusal *awsError) {
	from := 0
	if token != "" {
		text, err := base64.RawURLEncoding.DecodeString(token)
		var said struct {
			Action string
			From   int
		}
		if err != nil || json.Unmarshal(text, &said) != nil || said.Action != c.action || said.From > len(list) {
			return nil, "", &awsError{400, "InvalidNextToken", "The token '" + token + "' is invalid."}
		}
		from = said.From
	}
	to := min(len(list), from+size)
	if to < len(list) {
		next = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"Action":%q,"From":%d}`, c.action, to))
	}
	return slices.Clone(list[from:to]), next, nil
}

// records is page with the names that the query services have, at most 100 in a page.
func records[T any](c *awsCall, list []T, size, most int) (part []T, next string, refusal *awsError) {
	given, ok, refusal := c.number("MaxRecords", 1, most)
	if refusal != nil {
		return nil, "", refusal
	}
	if ok {
		size = given
	}
	return page(c, list, size, c.form.Get("NextToken"))
}
