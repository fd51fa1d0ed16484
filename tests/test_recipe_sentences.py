"""Every sentence of the five recipe sections of the specification has a test, named after the behaviour.

The map below leads from the beginning of a sentence to its tests. A sentence that it lacks fails, and so does a test
that does not exist. The specification is not part of a clone; without it, only the tests are checked.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

TESTS = Path(__file__).resolve().parent
FIRST_SECTION, AFTER_LAST_SECTION = "## 1. Recipe", "## 6. What"
ABBREVIATIONS = re.compile(r"\b(?:e\.g|i\.e)\.$")

SENTENCES: dict[str, str] = {
    # docs
    "Technical pages": "recipes/test_docs::test_technical_and_concept_pages_are_chunked_alike_into_one_collection "
    "ingest/pages/test_examples::test_pages_and_examples_are_stored_in_separate_collections",
    "A section record": "ingest/pages/test_parser::test_a_page_has_a_summary_examples_and_its_other_sections "
    "ingest/pages/test_names::test_the_name_is_the_title_or_comes_from_the_path",
    "An example record": "ingest/pages/test_examples::test_a_file_with_front_matter_and_code_is_an_example "
    "ingest/pages/test_examples::test_each_json_line_is_an_example",
    "Every page yields": "ingest/pages/test_parser::test_a_page_has_a_summary_examples_and_its_other_sections "
    "ingest/pages/test_parser::test_the_summary_is_the_section_with_a_summary_title "
    "ingest/pages/test_parser::test_the_examples_are_the_section_with_an_examples_title",
    "Markdown and MDX": "ingest/pages/test_parser::test_underlined_headings_are_headings "
    "ingest/pages/test_parser::test_a_hash_in_code_is_not_a_heading "
    "ingest/pages/test_parser::test_a_page_without_headings_is_a_summary "
    "ingest/pages/test_mdx::test_imports_and_front_matter_are_metadata "
    "ingest/pages/test_splitter::test_a_section_is_cut_where_the_topic_changes "
    "ingest/pages/test_splitter::test_a_long_line_is_cut_between_sentences",
    "All of this belongs": "recipes/test_docs::test_search_transforms_the_query_and_augments_it_from_the_editor "
    "apps/http/test_ask::test_ask_parameters_are_passed_to_the_engine "
    "llm/test_answer_service::test_search_transforms_with_the_model_and_reports_its_failure",
    "Answers are organised": "apps/test_ask::test_a_search_of_documentation_is_printed_by_page "
    "apps/mcp/test_tools::test_pages_are_organised_in_the_text",
    "A language model turns": "llm/test_answer_service::test_the_vector_search_gets_the_keywords_of_the_model "
    "recipes/test_docs::test_vector_search_gets_the_rewrite_and_keyword_search_the_query",
    "On any failure or time-out": "llm/test_transform::test_a_failure_keeps_the_original_question_and_states_the_reason "
    "llm/test_answer_service::test_the_question_itself_is_searched_when_keywords_come_too_late",
    "Providers": "llm/test_providers::test_each_provider_gets_a_request_in_its_own_protocol "
    "llm/test_answer_service::test_the_transform_can_be_disabled_and_works_offline",
    "Keywords are extracted": "ingest/editor/test_keywords::test_strudel_has_banks_sounds_functions_and_notes "
    "ingest/editor/test_keywords::test_other_languages_have_functions_types_and_imports "
    "ingest/editor/test_keywords::test_any_text_has_at_most_ten_distinct_keywords "
    "llm/test_answer_service::test_keywords_of_the_editor_augment_the_question",
    "Empty editor": "llm/test_answer_service::test_an_empty_editor_is_skipped",
    "Both sources fetch": "recipes/test_docs::test_both_sources_fetch_top_k_and_five_more",
    "Weighted fusion": "recipes/test_docs::test_weighted_fusion_is_0_7_of_meaning_plus_0_3_of_words "
    "recipes/test_docs::test_a_hit_in_one_list_only_gets_that_list_s_share",
    "Keyword scores are brought": "recipes/test_docs::test_keyword_scores_are_scaled_to_0_to_1",
    "Sections and examples": "recipes/test_docs::test_sections_and_examples_have_each_their_own_search",
    "For each page in the results": "recipes/test_docs::test_each_page_has_its_summary_then_short_examples_then_sections "
    "recipes/test_docs::test_examples_of_500_characters_or_more_are_left_out "
    "recipes/test_docs::test_hits_are_grouped_by_page_as_specified",
    "Builds the system prompt": "context/test_prompt::test_pages_examples_and_the_editor_come_in_order "
    "llm/test_answer_service::test_a_language_model_answers_and_its_citations_are_checked",
    "Keyword fails": "recipes/test_docs::test_when_one_source_fails_the_other_answers "
    "recipes/test_docs::test_keyword_search_answers_without_embeddings "
    "recipes/test_docs::test_nothing_found_gives_an_empty_list_and_says_so",
    # artifacts
    "`memory` (durable facts": "recipes/test_artifacts::test_memory_is_searched_on_request_and_history_by_name "
    "recipes/test_artifacts::test_artifact_is_chunked_with_positions",
    "A new collection": "recipes/test_artifacts::test_a_new_collection_is_a_line_of_configuration",
    "hybrid_search(query, limit=5": "recipes/test_artifacts::test_a_limit_outside_1_to_50_is_refused "
    "recipes/test_artifacts::test_limit_from_1_to_50_is_accepted "
    "apps/mcp/test_tools::test_include_memory_and_memory_search",
    "One query embedding": "recipes/test_artifacts::test_one_embedding_of_the_query_serves_every_collection",
    "`artifacts` and `artifact_chunks` always": "recipes/test_artifacts::test_default_settings_match_the_specification "
    "recipes/test_artifacts::test_memory_is_searched_on_request_and_history_by_name",
    "`Σ 1/(60 + rank)`": "recipes/test_artifacts::test_the_first_of_a_list_scores_a_sixtieth",
    "Rank 2 in one list": "recipes/test_artifacts::test_rank_2_in_one_list_and_rank_5_in_another_score_0_0315",
    "One result per artifact": "recipes/test_artifacts::test_chunk_is_preferred_to_its_document_in_any_order "
    "recipes/test_artifacts::test_between_chunks_of_one_artifact_the_higher_score_stays "
    "recipes/test_artifacts::test_dedupe_keeps_the_best_chunk_of_each_document "
    "recipes/test_artifacts::test_order_is_by_score_and_equal_scores_by_id",
    "The trace names": "recipes/test_artifacts::test_chunk_is_preferred_to_its_document_in_any_order",
    "`artifact_type`, `sensitivity`": "test_filter_operators::test_an_operator_means_the_same_in_all_forms_and_what_python_says "
    "apps/mcp/test_tools::test_filters_are_applied",
    "Applied inside each source": "recipes/test_artifacts::test_filtered_search_returns_limit_results_when_enough_match",
    "Enforced, not a placeholder": "test_privacy::test_result_equals_that_of_a_database_without_the_hidden_records "
    "test_privacy::test_a_clearance_reaches_its_level_and_those_below "
    "test_privacy::test_a_level_or_scope_that_only_the_metadata_states_protects",
    "A hook lets": "test_privacy::test_deployment_rule_can_only_restrict",
    "For a chunk hit": "recipes/test_artifacts::test_a_chunk_comes_with_its_neighbours",
    "The first and last chunk": "recipes/test_artifacts::test_a_chunk_comes_with_its_neighbours",
    "A neighbour the caller": "recipes/test_artifacts::test_hidden_neighbour_is_not_shown",
    "`RRF_CONSTANT=60`": "recipes/test_artifacts::test_default_settings_match_the_specification "
    "recipes/test_artifacts::test_plain_variables_set_the_constants_and_prefixed_ones_win",
    "`hybrid_search` answers": "apps/mcp/test_tools::test_hybrid_search_answers_in_the_form_of_the_specification "
    "apps/mcp/test_tools::test_structured_content_matches_the_output_schema_exactly",
    "First line": "apps/mcp/test_tools::test_hybrid_search_answers_in_the_form_of_the_specification",
    "Each result is a paragraph": "context/test_tool_output::test_a_result_has_every_field_of_the_contract "
    "context/test_tool_output::test_a_line_without_a_value_is_left_out_and_an_unknown_system_is_a_question_mark "
    "context/test_tool_output::test_a_snippet_is_the_first_two_hundred_characters_on_one_line",
    "`Type:` is": "context/test_tool_output::test_a_result_has_every_field_of_the_contract "
    "context/test_tool_output::test_a_part_of_a_file_is_a_chunk_and_cited_by_path_and_lines_in_the_notes",
    "The label of the score": "apps/mcp/test_tools::test_without_artifacts_the_tool_searches_by_the_default_recipe",
    "`No results found.` when empty": "context/test_tool_output::test_an_empty_result_says_so "
    "apps/mcp/test_tools::test_search_without_results_says_so "
    "apps/mcp/test_tools::test_a_search_whose_sources_all_fail_is_a_failure",
    "Without a named recipe": "apps/mcp/test_tools::test_hybrid_search_answers_in_the_form_of_the_specification "
    "apps/mcp/test_tools::test_without_artifacts_the_tool_searches_by_the_default_recipe",
    "`memory_search` searches": "apps/mcp/test_tools::test_include_memory_and_memory_search",
    "Each list is a collection": "recipes/test_artifacts::test_one_embedding_of_the_query_serves_every_collection",
    "A recipe may search each": "recipes/test_artifacts::test_by_meaning_alone_a_single_rank_0_scores_one_sixtieth",
    "A record found in several collections": "context/test_tool_output::"
    "test_a_record_found_in_several_collections_names_them_all",
    "Structured events": "recipes/test_artifacts::test_a_search_logs_its_merge_its_deduplication_and_a_summary",
    # memory
    "The query's words": "recipes/test_memory::test_operators_in_a_query_are_plain_words",
    "Pool `limit × 4`": "recipes/test_memory::test_default_numbers_match_the_specification",
    "Optional look-back": "recipes/test_memory::test_look_back_excludes_older_records "
    "recipes/test_memory::test_default_numbers_match_the_specification",
    "Cosine; pool": "recipes/test_memory::test_default_numbers_match_the_specification",
    "Embeddings from Ollama": "embedding/test_ollama::test_a_request_follows_the_protocol "
    "embedding/test_ollama::test_long_vectors_are_truncated_to_1024_numbers_and_normalised",
    "Segments are embedded": "stores/test_late_vectors::test_record_is_found_by_keyword_at_once_and_by_vector_later",
    "A temporal knowledge graph": "test_facts::test_the_record_of_a_fact_has_its_fields_in_the_metadata "
    "test_facts::test_a_late_fact_with_earlier_validity_is_history_at_once",
    "It is entered where": "recipes/test_memory::test_a_fact_is_found_by_the_graph_and_not_by_its_words "
    "recipes/test_memory::test_a_fact_is_found_by_its_own_words_without_a_name "
    "graph/test_traversal::test_the_score_decays_with_every_hop "
    "test_facts::test_the_line_of_a_fact",
    "Pool `limit × 1`": "recipes/test_memory::test_default_numbers_match_the_specification",
    "A fact is treated as fresh": "recipes/test_memory::test_fact_does_not_decay "
    "apps/http/test_search::test_context_returns_turns_and_facts",
    "A fact that answers": "recipes/test_memory::"
    "test_the_current_fact_stands_before_small_talk_and_before_what_it_superseded",
    "Superseded facts": "recipes/test_memory::test_a_superseded_fact_leaves_the_results_and_stays_in_history",
    "RRF k=60, rank from 1": "recipes/test_memory::test_ranks_1_2_2_score_0_0486",
    "A record found by several sources": "recipes/test_memory::"
    "test_a_record_found_by_several_sources_has_all_of_its_metadata",
    "`factor = max": "recipes/test_memory::test_score_halves_in_thirty_days "
    "recipes/test_memory::test_recency_is_the_share_of_the_factor_that_counts",
    "With `recency = 1`": "recipes/test_memory::test_worked_example_fuses_and_decays_as_specified",
    "The default is `recency": "recipes/test_memory::test_a_question_for_recent_things_counts_age_in_full "
    "recipes/test_memory::test_a_stated_period_comes_first_and_why_says_so",
    "Why: at 1 everywhere": "recipes/test_memory::test_an_old_answer_stands_before_recent_small_talk",
    "On `locomo_dev`": "recipes/test_memory::test_age_decides_between_texts_that_say_the_same "
    "evaluation/test_floors::test_old_evidence_is_found_with_the_clock_at_the_end",
    "About `factor`": "recipes/test_memory::test_evergreen_kinds_never_fall_below_the_floor",
    "Ages 0, 30, 60": "recipes/test_memory::test_score_halves_in_thirty_days "
    "recipes/test_memory::test_evergreen_kinds_never_fall_below_the_floor",
    "A timestamp in the future": "recipes/test_memory::test_future_and_missing_timestamps_have_age_0",
    "λ=0.7 over the best 20": "recipes/test_memory::test_default_numbers_match_the_specification "
    "recipes/test_memory::test_mmr_keeps_the_order_beyond_the_best_20 "
    "recipes/test_memory::test_cosine_is_selectable",
    'The question "What did I tell': "recipes/test_memory::test_worked_example_fuses_and_decays_as_specified",
    "Keyword order": "recipes/test_memory::test_worked_example_fuses_and_decays_as_specified",
    "Vector order": "recipes/test_memory::test_worked_example_fuses_and_decays_as_specified",
    "Graph: `Rajesh": "recipes/test_memory::test_worked_example_fuses_and_decays_as_specified",
    '"I told Priya …" fuses': "recipes/test_memory::test_worked_example_fuses_and_decays_as_specified",
    "With speaker Rajesh": "recipes/test_memory::test_worked_example_gives_the_specified_prompt_block",
    "`GET /v1/context": "apps/http/test_search::test_context_returns_turns_and_facts",
    "Ingest endpoints": "apps/http/test_records::test_conversation_turns_are_stored_with_session_and_position "
    "apps/http/test_records::test_fact_is_found_by_its_entities",
    "A bulleted list": "context/test_briefing::test_speech_has_a_speaker_and_a_fact_has_none "
    "context/test_briefing::test_each_text_is_cut_at_200_characters "
    "context/test_briefing::test_the_block_has_2000_characters_at_most "
    "context/test_briefing::test_no_memory_escapes_from_the_block "
    "context/test_sanitize::test_control_characters_are_removed_and_newline_and_tab_stay",
    "Appended to a system prompt": "context/test_briefing::test_the_block_follows_a_prompt_after_a_blank_line",
    "A small loader": "test_client::test_the_awaited_loader_returns_the_same_block "
    "test_client::test_any_failure_gives_an_empty_block "
    "test_client::test_slow_service_is_abandoned_in_time",
    "Any subset of the three": "apps/http/test_degraded::test_any_subset_of_sources_may_fail "
    "recipes/test_degraded_sources::test_remaining_sources_answer_and_failed_ones_are_named",
    "All down": "apps/http/test_degraded::test_any_subset_of_sources_may_fail",
    # files
    "Each match comes": "recipes/test_files::test_a_match_comes_with_ten_lines_around_it "
    "folders/test_grep::test_marked_text_has_line_numbers_and_marks_matches",
    "Two matches of one file": "recipes/test_files::test_two_matches_within_twenty_lines_are_one_passage",
    "Chunks whose distance": "recipes/test_files::test_a_chunk_at_distance_05_is_discarded_and_nearer_ones_stay",
    "The metric is named": "recipes/test_files::test_the_metric_is_a_setting "
    "recipes/test_files::test_the_calibrated_distance_is_05_where_95_percent_of_true_answers_are_nearer",
    "An answer that lost everything": "recipes/test_files::"
    "test_an_answer_that_lost_everything_to_the_threshold_names_the_nearest",
    "Both in parallel, RRF": "recipes/test_files::test_both_run_and_fuse_by_reciprocal_rank_into_ten",
    "One side empty": "recipes/test_files::test_without_grep_matches_vector_results_keep_their_order "
    "recipes/test_files::test_without_near_chunks_grep_matches_keep_their_order",
    "Keywords missing": "recipes/test_files::test_missing_keywords_are_extracted_from_the_query",
    "The whole UTF-8 text": "recipes/test_files::test_a_file_is_read_whole",
    "Missing, inside": "recipes/test_files::test_each_read_failure_has_its_code",
    "Outside": "recipes/test_files::test_each_read_failure_has_its_code "
    "folders/test_access::test_what_is_outside_is_denied_whether_it_exists_or_not",
    "Symlinks, `..`": "folders/test_escapes::test_any_path_reads_only_files_inside "
    "folders/test_escapes::test_no_known_payload_reads_the_secret "
    "folders/test_access::test_pipes_sockets_and_devices_are_never_opened "
    "folders/test_access::test_another_case_is_another_name_unless_the_file_system_says_otherwise "
    "folders/test_access::test_file_too_large_to_scan_is_rejected "
    "folders/test_access::test_invalid_utf_8_is_not_text",
    "Every search emits": "recipes/test_files::test_every_search_reports_its_size "
    "apps/tui/test_search::test_results_appear_while_typing_and_the_status_counts_them "
    "apps/tui/test_search::test_grep_is_one_of_the_recipes_and_counts_files",
    "The real path": "recipes/test_files::test_a_citation_is_the_real_path_with_its_lines",
    # code
    "Anchors are deterministic": "hydration/test_anchors::test_a_file_mention_anchors_all_its_entities_in_file_order "
    "hydration/test_anchors::test_a_symbol_anchors_its_type_callees_and_callers_at_a_lower_priority "
    "hydration/test_anchors::test_earlier_turns_come_after_named_entities_and_before_related_ones "
    "hydration/test_anchors::test_a_plain_word_that_is_a_name_is_an_inferred_mention",
    "Deduplicated, the highest": "hydration/test_anchors::test_every_entity_occurs_once_and_priorities_descend",
    "Where the anchors": "hydration/test_anchors::test_the_most_relevant_anchors_of_a_priority_come_first "
    "hydration/test_plans::test_the_most_relevant_entities_of_a_named_file_come_first",
    "Semantics are advisory": "hydration/test_plans::test_a_score_equal_to_the_threshold_is_excluded "
    "hydration/test_plans::test_the_keyword_source_is_the_fallback_below_the_threshold "
    "hydration/test_plans::test_a_semantic_candidate_has_its_cosine_as_reason_where_the_metric_is_cosine",
    "Unrelated code": "hydration/test_plans::test_the_example_of_the_specification",
    "`HydrationPlan` under a budget": "hydration/test_planner::test_anchors_are_limited_by_tokens_and_not_by_entities "
    "hydration/test_planner::test_candidates_have_a_budget_of_their_own",
    "Anchors first by priority": "hydration/test_planner::test_no_candidate_comes_before_an_anchor "
    "hydration/test_planner::test_the_priority_of_a_candidate_is_its_score_in_percent "
    "hydration/test_plans::test_candidates_are_ranked_as_the_recipe_ranks",
    "An anchor that does not fit": "hydration/test_planner::"
    "test_an_anchor_that_does_not_fit_is_dropped_and_the_next_is_tried "
    "hydration/test_planner::test_the_first_candidate_that_does_not_fit_ends_the_expansion "
    "hydration/test_plans::test_anchors_that_are_all_too_large_are_reported_in_the_log_and_the_introspection",
    "Invariants, property-tested": "hydration/test_planner::test_the_budget_is_never_exceeded "
    "hydration/test_planner::test_no_candidate_comes_before_an_anchor "
    "hydration/test_planner::test_the_same_inputs_give_the_same_bytes "
    "hydration/test_plans::test_the_invariants_hold_for_every_turn_of_an_episode",
    "Each entry's reason": "hydration/test_plans::test_the_example_of_the_specification "
    "hydration/test_plans::test_a_semantic_candidate_has_its_cosine_as_reason_where_the_metric_is_cosine",
    "Functions, methods, classes": "ingest/code/test_languages::test_entity_has_its_signature_and_doc "
    "ingest/code/test_languages::test_a_file_has_its_imports "
    "ingest/code/test_languages::test_entity_has_its_calls_and_references",
    "Content is addressed by hash": "hydration/test_plans::"
    "test_a_changed_file_is_read_alone_and_only_new_entities_are_embedded "
    "recipes/test_code::test_deleted_file_is_in_no_plan_or_search",
    "Token counts by": "hydration/test_planner::test_tokens_are_counted_by_a_real_tokenizer",
    "Memory, then database": "embedding/test_cache::test_a_repeated_query_comes_from_the_cache "
    "hydration/test_plans::test_a_changed_file_is_read_alone_and_only_new_entities_are_embedded",
    "A new model or content": "stores/test_model_change::test_every_search_during_a_model_change_uses_one_model "
    "stores/test_model_change::test_switching_back_and_forth_leaves_no_vectors_of_other_models",
    "TTL 24 h": "embedding/test_cache::test_a_query_is_computed_again_after_its_ttl",
    "Provider `openai`": "hydration/test_plans::test_the_plan_is_structural_when_the_embedding_service_is_down "
    "hydration/test_plans::test_the_plan_is_structural_when_the_settings_exclude_the_vectors",
    "`GET /introspect": "apps/http/test_plans::test_episode_can_be_inspected_and_replayed "
    "hydration/test_episodes::test_introspection_lists_every_entity_with_its_reason_and_preview "
    "hydration/test_planner::test_a_preview_is_the_first_two_hundred_characters",
    "The log of a plan": "hydration/test_plans::test_the_log_of_a_plan_has_the_numbers_and_the_anchors",
    "The same from the command line": "apps/test_plan::test_introspect_shows_the_plans_of_an_episode",
    "`[hydration]`": "hydration/test_plans::test_the_settings_of_the_specification_have_their_defaults",
}

ELSEWHERE = ("Features from the trace",)
"""Sentences that are tested with another section: learning from use."""


def sentences(specification: str) -> Iterator[str]:
    """The sentences of the five recipe sections, without their headings."""
    _, _, rest = specification.partition(FIRST_SECTION)
    sections = re.sub(r"```.*?```", "", rest.partition(AFTER_LAST_SECTION)[0], flags=re.DOTALL)
    for block in re.split(r"\n(?=- |\n|##)", sections):
        text = " ".join(block.split())
        text = re.sub(r"^- ", "", text)
        heading = re.match(r"\*\*(?P<name>[^*]+?)(?P<stop>\.?)\*\*\s*", text)
        if heading is not None:
            text = text[heading.end() :] if heading["stop"] else f"{heading['name']} {text[heading.end() :]}"
        if not text or text.startswith(("#", "`docs`", "`artifacts`\n")) or re.fullmatch(r"\W*\w+\W*", text):
            continue
        begin = ""
        for part in re.split(r"(?<=[.!?])\s+(?=[A-Z`\"ΣλA-Z])", text):
            begin = f"{begin} {part}".strip()
            if not ABBREVIATIONS.search(begin):
                yield begin
                begin = ""


def test_every_sentence_of_the_recipe_sections_has_a_test(leave_out: Callable[[str], NoReturn]) -> None:
    specification = TESTS.parent.parent / "shared" / "SPEC.md"
    if not specification.is_file():
        leave_out("the specification is not there: ../shared/SPEC.md, from the repository's root")
    known = (*SENTENCES, *ELSEWHERE)
    found = list(sentences(specification.read_text(encoding="utf-8")))
    untested = [one for one in found if not one.startswith(known)]
    assert not untested
    gone = [one for one in known if not any(sentence.startswith(one) for sentence in found)]
    assert not gone, "the specification does not say this any more"


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_tests_of_a_sentence_exist(sentence: str) -> None:
    for name in SENTENCES[sentence].split():
        module, _, function = name.partition("::")
        tree = ast.parse((TESTS / f"{module}.py").read_text(encoding="utf-8"))
        names = {
            node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert function in names, name
