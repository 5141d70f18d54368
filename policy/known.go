package policy

import (
	"fmt"
	"strings"

	"sluice/probe"
)

// Engine is what the workers of a pool run. It decides which members of a body
// beyond those of the OpenAI and Anthropic APIs are known.
type Engine uint8

// The engines.
const (
	// EngineOpenAI is anything that speaks these APIs and no more of them.
	EngineOpenAI Engine = iota
	EngineVLLM
	EngineSGLang
	numEngines
)

var engineNames = [numEngines]string{EngineOpenAI: "openai", EngineVLLM: "vllm", EngineSGLang: "sglang"}

// ParseEngine returns the engine of a name in a config; an empty one is openai.
func ParseEngine(name string) (Engine, error) {
	for e, known := range engineNames {
		if name == known {
			return Engine(e), nil
		}
	}
	if name == "" {
		return EngineOpenAI, nil
	}
	return 0, fmt.Errorf("unknown engine %q%s; expected %s", name, suggestion(name, engineNames[:]), strings.Join(engineNames[:], ", "))
}

// String returns the name of e in a config.
func (e Engine) String() string {
	if e >= numEngines {
		return "unknown"
	}
	return engineNames[e]
}

// The members that a request of each surface may have, as the packages of these
// releases define them. The models of the requests:
//
//	OpenAI     openai 3.57.0 (PyPI), types/chat/completion_create_params.py,
//	           types/completion_create_params.py, types/responses/response_create_params.py
//	Anthropic  anthropic 2.14.0 (PyPI), types/message_create_params.py and beta/message_create_params.py,
//	           with temperature, top_p and top_k, which engines read and which
//	           that release no longer lists
//	vLLM       0.33.0 of 2026-11-01, entrypoints/openai/{chat_completion,completion,responses}/protocol.py,
//	           entrypoints/anthropic/protocol.py; guided_* and best_of as of 0.11
//	SGLang     0.5.23 of 2026-10-30, srt/entrypoints/openai/protocol.py, srt/entrypoints/anthropic/protocol.py,
//	           srt/managers/io_struct.py (GenerateReqInput), srt/sampling/sampling_params.py;
//	           without what its processes tell each other (http_worker_ipc, received_time …)
//
// Read on 2026-12-01. A newer member is added to these texts or, until then, to
// known_params. The router's own enable_thinking is known everywhere.
const (
	openaiChat = `audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens
		messages metadata modalities model moderation n parallel_tool_calls prediction presence_penalty
		prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort response_format
		safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools
		top_logprobs top_p user verbosity web_search_options`
	openaiCompletions = `best_of echo frequency_penalty logit_bias logprobs max_tokens model n presence_penalty prompt seed
		stop stream stream_options suffix temperature top_p user`
	openaiResponses = `access_programs background background_options context_management conversation image include
		input instructions max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls
		previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning
		safety_identifier service_tier store stream stream_options temperature text tool_choice tools
		top_logprobs top_p truncation user`
	anthropicMessages = `billing_policy cache_control compaction container context_management diagnostics
		fallback_credit_token fallbacks inference_geo max_tokens mcp_servers messages metadata model output_config
		service_tier speed stop_sequences stream system temperature thinking thread tool_choice tools top_k top_p`

	vllmChat = `add_generation_prompt add_special_tokens allowed_token_ids bad_words cache_salt chat_template
		chat_template_kwargs continue_final_message documents ec_transfer_params echo ignore_eos
		include_reasoning include_stop_str_in_output kv_transfer_params length_penalty logprob_token_ids
		media_io_kwargs min_p min_tokens mm_payload mm_processor_kwargs priority prompt_logprobs
		repetition_detection repetition_penalty request_id return_mm_kwargs return_prompt_text
		return_token_ids return_token_offsets return_tokens_as_token_ids return_weight_versions
		routed_experts_prompt_start session_id skip_special_tokens spaces_between_special_tokens stop_token_ids
		stream_interval structured_outputs thinking_token_budget top_k truncate_prompt_tokens truncation_side
		use_beam_search vllm_xargs watermarking best_of
		guided_json guided_regex guided_choice guided_grammar guided_decoding_backend guided_whitespace_pattern structural_tag`
	vllmCompletions = `add_special_tokens allowed_token_ids bad_words cache_salt ec_transfer_params ignore_eos
		include_stop_str_in_output kv_transfer_params length_penalty logprob_token_ids min_p min_tokens
		mm_payload priority prompt_embeds prompt_logprobs repetition_detection repetition_penalty request_id
		response_format return_mm_kwargs return_token_ids return_token_offsets return_tokens_as_token_ids
		return_weight_versions routed_experts_prompt_start session_id skip_special_tokens
		spaces_between_special_tokens stop_token_ids stream_interval structured_outputs thinking_token_budget
		top_k truncate_prompt_tokens truncation_side use_beam_search vllm_xargs watermarking
		guided_json guided_regex guided_choice guided_grammar guided_decoding_backend guided_whitespace_pattern`
	vllmResponses = `cache_salt chat_template_kwargs ec_transfer_params enable_response_messages frequency_penalty
		ignore_eos include_reasoning include_stop_str_in_output kv_transfer_params logit_bias media_io_kwargs
		min_p mm_payload mm_processor_kwargs presence_penalty previous_input_messages priority
		repetition_penalty request_id return_mm_kwargs seed session_id skip_special_tokens
		spaces_between_special_tokens stop stop_token_ids structured_outputs top_k vllm_xargs watermarking`
	vllmMessages = `cache_salt chat_template_kwargs ec_transfer_params kv_transfer_params mm_payload return_mm_kwargs
		vllm_xargs watermarking`

	sglangChat = `bootstrap_host bootstrap_port bootstrap_room cache_salt chat_template_kwargs continue_final_message
		custom_logit_processor custom_params data_parallel_rank disagg_prefill_dp_rank ebnf extra_key ignore_eos
		images_config input_ids lora_path max_dynamic_patch min_dynamic_patch min_p min_tokens
		mm_processor_kwargs no_stop_trim priority reasoning regex repetition_penalty
		return_cached_tokens_details return_flat_raw_output_top_logprobs return_flat_raw_top_logprobs_b64
		return_hidden_states return_input_ids_in_sglext return_meta_info return_output_ids_in_sglext
		return_prompt_token_ids return_routed_experts return_sampling_mask return_spec_tokens_details
		return_token_ids rid routed_dp_rank routed_experts_start_len sampling_logprobs_mode separate_reasoning
		session_id session_params skip_special_tokens stop_regex stop_token_ids stream_reasoning task thinking
		top_k use_audio_in_video video_config watermark`
	sglangCompletions = `bootstrap_host bootstrap_port bootstrap_room cache_salt custom_labels custom_logit_processor
		custom_params data_parallel_rank disagg_prefill_dp_rank ebnf extra_key ignore_eos images_config
		json_schema lora_path min_p min_tokens mm_processor_kwargs no_stop_trim priority regex
		repetition_penalty response_format return_cached_tokens_details return_hidden_states
		return_routed_experts return_spec_tokens_details return_token_ids rid routed_dp_rank
		routed_experts_start_len session_id session_params skip_special_tokens stop_regex stop_token_ids top_k
		watermark`
	sglangResponses = `bootstrap_host bootstrap_port bootstrap_room cache_salt chat_template_kwargs data_parallel_rank
		disagg_prefill_dp_rank extra_key frequency_penalty min_p presence_penalty priority repetition_penalty
		request_id routed_dp_rank session_id stop top_k`
	sglangMessages = `betas`

	sglangGenerate = `audio_data background bootstrap_host bootstrap_pair_key bootstrap_port bootstrap_room cache_salt
		conversation_id custom_labels custom_logit_processor data_parallel_rank disagg_prefill_dp_rank
		encoder_urls external_trace_header extra_key image_data image_max_dynamic_patch images_config
		input_embeds input_ids kv_hints log_metrics logprob_start_len lora_id lora_path max_dynamic_patch
		max_thinking_tokens min_dynamic_patch mm_content_hashes mm_hashes mm_processor_kwargs modalities model
		multi_item_delimiter_indices no_logs positional_embed_overrides priority require_reasoning return_bytes
		return_entropy return_flat_raw_output_top_logprobs return_flat_raw_top_logprobs
		return_flat_raw_top_logprobs_b64 return_hidden_states return_indexer_topk return_logprob
		return_prompt_token_ids return_routed_experts return_sampling_mask return_text_in_logprobs rid
		routed_dp_rank routed_experts_start_len routing_key sampling_logprobs_mode sampling_params session_id
		session_params stream text token_ids_logprob top_logprobs_num use_audio_in_video video_config video_data
		video_max_dynamic_patch watermark`

	// sglangSampling are the members of an object in sampling_params.
	sglangSampling = `beam_width custom_params ebnf frequency_penalty ignore_eos json_schema logit_bias
		max_new_tokens min_new_tokens min_p n no_stop_trim presence_penalty regex repetition_penalty
		sampling_seed skip_special_tokens spaces_between_special_tokens stop stop_regex stop_token_ids
		stream_interval structural_tag temperature top_k top_p`
)

// thinkingKey is the member by which a client asks the router for thinking.
const thinkingKey = "enable_thinking"

// knownKeys are the members that one engine knows on one surface.
type knownKeys struct {
	fields probe.FieldSet // those with a field
	keys   keyTable       // those without
}

// knownOf holds the known members by surface and engine, made once at start and
// never changed. What only one engine serves it knows under each name: generate
// is SGLang's.
var knownOf = [probe.SurfaceGenerate + 1][numEngines]knownKeys{
	probe.SurfaceChat:        knownOn(openaiChat, vllmChat, sglangChat),
	probe.SurfaceCompletions: knownOn(openaiCompletions, vllmCompletions, sglangCompletions),
	probe.SurfaceResponses:   knownOn(openaiResponses, vllmResponses, sglangResponses),
	probe.SurfaceMessages:    knownOn(anthropicMessages, vllmMessages, sglangMessages),
	probe.SurfaceGenerate:    knownOn(sglangGenerate, "", ""),
}

// samplingKeys are the members that belong into sampling_params on generate.
var samplingKeys = newKeyTable(strings.Fields(sglangSampling))

// knownOn returns the known members of one surface: those of its API, and with
// them those that an engine adds.
func knownOn(api, vllm, sglang string) (known [numEngines]knownKeys) {
	for e, extra := range [numEngines]string{EngineVLLM: vllm, EngineSGLang: sglang} {
		var rest []string
		for _, key := range strings.Fields(api + " " + extra + " " + thinkingKey) {
			if f := fieldOf(key); f != probe.FieldNone {
				known[e].fields = known[e].fields.With(f)
			} else {
				rest = append(rest, key)
			}
		}
		known[e].keys = newKeyTable(rest)
	}
	return known
}
